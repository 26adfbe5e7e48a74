-- Which job holds a key that its tenant wants to be unique. Written only by jobs that want that.
CREATE TABLE unique_jobs (
    shard        int         NOT NULL,
    tenant       int         NOT NULL,
    digest       bytea       NOT NULL,                    -- of the tenant's key, 16 bytes
    job          uuid        NOT NULL,                    -- who holds it
    states       smallint    NOT NULL,                    -- in which it does, as bits
    expires_at   timestamptz NOT NULL,                    -- and until when
    PRIMARY KEY (shard, tenant, digest)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX unique_jobs_expiry ON unique_jobs (shard, expires_at);

ALTER TABLE unique_jobs ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON unique_jobs USING (tenant = current_tenant());
