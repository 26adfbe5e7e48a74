-- A second wall between tenants: rows are of the tenant that a connection is set to, unless it is the server's own.
-- Which roles there are, and who passes this by, is in row_security.py.

-- The tenant that a connection answers for; NULL, and no row is anybody's, where none is set.
CREATE FUNCTION current_tenant() RETURNS int LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('fairway.tenant', true), '')::int;

ALTER TABLE tenants              ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys             ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenant_types         ENABLE ROW LEVEL SECURITY;
ALTER TABLE jobs                 ENABLE ROW LEVEL SECURITY;
ALTER TABLE idempotency          ENABLE ROW LEVEL SECURITY;
ALTER TABLE pauses               ENABLE ROW LEVEL SECURITY;
ALTER TABLE fair_share           ENABLE ROW LEVEL SECURITY;
ALTER TABLE dead_letter_actions  ENABLE ROW LEVEL SECURITY;
ALTER TABLE circuits             ENABLE ROW LEVEL SECURITY;
ALTER TABLE quarantines          ENABLE ROW LEVEL SECURITY;
ALTER TABLE events               ENABLE ROW LEVEL SECURITY;
ALTER TABLE schedules            ENABLE ROW LEVEL SECURITY;
ALTER TABLE schedule_runs        ENABLE ROW LEVEL SECURITY;
ALTER TABLE checkpoints          ENABLE ROW LEVEL SECURITY;

CREATE POLICY of_tenant ON tenants             USING (id = current_tenant());
CREATE POLICY of_tenant ON api_keys            USING (tenant = current_tenant());
CREATE POLICY of_tenant ON tenant_types        USING (tenant = current_tenant());
CREATE POLICY of_tenant ON jobs                USING (tenant = current_tenant());
CREATE POLICY of_tenant ON idempotency         USING (tenant = current_tenant());
CREATE POLICY of_tenant ON pauses              USING (tenant = current_tenant());
CREATE POLICY of_tenant ON fair_share          USING (tenant = current_tenant());
CREATE POLICY of_tenant ON dead_letter_actions USING (tenant = current_tenant());
CREATE POLICY of_tenant ON circuits            USING (tenant = current_tenant());
CREATE POLICY of_tenant ON quarantines         USING (tenant = current_tenant());
CREATE POLICY of_tenant ON events              USING (tenant = current_tenant());
CREATE POLICY of_tenant ON schedules           USING (tenant = current_tenant());
CREATE POLICY of_tenant ON schedule_runs       USING (tenant = current_tenant());
CREATE POLICY of_tenant ON checkpoints         USING (tenant = current_tenant());

-- Whoever writes rows as the owner of a shard locks the row that says so; nobody changes it on the way.
ALTER TABLE shards ENABLE ROW LEVEL SECURITY;
CREATE POLICY to_be_locked ON shards USING (true) WITH CHECK (false);
