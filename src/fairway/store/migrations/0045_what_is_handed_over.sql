-- When each worker was last heard, and whose it is: one narrow row a worker and server that hears it, however many
-- shards that server owns. Servers of the build before go on with `sessions`, a row a worker and shard; what they
-- wrote is still read when a shard is taken over from one of them.
CREATE TABLE worker_sessions (
    server       text        NOT NULL,                      -- its name, as in shards.owner
    session      uuid        NOT NULL,
    worker       text        NOT NULL,
    seen_at      timestamptz NOT NULL,                      -- in no index: it changes every few seconds
    tenant       int,                                       -- of the key; NULL with an opener: it runs every tenant's jobs
    opener       text,                                      -- the id of the key that opened it
    PRIMARY KEY (server, session)
) WITH (fillfactor = 50);

CREATE INDEX worker_sessions_of ON worker_sessions (session);

ALTER TABLE worker_sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON worker_sessions USING (tenant = current_tenant());

-- What started of late by keys with a rate, as the owner wrote it down when it let the shard go: one bounded row.
-- The next owner goes by it if it is of the term before its own; servers of the build before know nothing of it.
CREATE TABLE rate_windows (
    shard        int         PRIMARY KEY,
    term         bigint      NOT NULL,                      -- of the owner that wrote it
    saved_at     timestamptz NOT NULL,
    windows      bytea       NOT NULL
);
