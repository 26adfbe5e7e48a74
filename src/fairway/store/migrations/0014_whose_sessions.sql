-- Whose a session is: who takes a shard over must know it before the session's worker speaks. Rows from before
-- this say nothing (no opener), and their sessions are nobody's until then.
ALTER TABLE sessions ADD COLUMN tenant int;                -- of the key; NULL with an opener: it runs every tenant's jobs
ALTER TABLE sessions ADD COLUMN opener text;               -- the id of the key that opened it

ALTER TABLE sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON sessions USING (tenant = current_tenant());
