-- Words of a tenant's own on its jobs; NULL for those without any.
ALTER TABLE jobs ADD COLUMN tags text[];
ALTER TABLE jobs ADD COLUMN metadata bytea;

-- What runs said: chunks of lines, in days of their own by when they were written, so that old ones go as a whole.
CREATE TABLE job_logs (
    shard        int         NOT NULL,
    tenant       int         NOT NULL,
    job          uuid        NOT NULL,
    epoch        bigint      NOT NULL,                    -- of the lease that the run had
    first_n      smallint    NOT NULL,                    -- numbers of its lines
    last_n       smallint    NOT NULL,
    written_at   timestamptz NOT NULL DEFAULT now(),
    attempt      smallint    NOT NULL,
    lines        bytea       NOT NULL,                    -- JSON text of a list
    PRIMARY KEY (shard, tenant, job, epoch, first_n, written_at),
    CONSTRAINT lines_have_an_order CHECK (first_n BETWEEN 1 AND last_n)
) PARTITION BY RANGE (written_at);

ALTER TABLE job_logs ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON job_logs USING (tenant = current_tenant());
