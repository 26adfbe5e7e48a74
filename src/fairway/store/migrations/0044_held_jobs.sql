-- What waits in this store to be handed over to a tenant's home in another region. Nothing here is ever dispatched here.
CREATE TABLE held_jobs (
    shard       int         NOT NULL,
    tenant      int         NOT NULL,
    id          uuid        NOT NULL,                     -- of the job; of the first, if several came in one call
    last_id     uuid        NOT NULL,                     -- and of the last
    kind        smallint    NOT NULL CHECK (kind BETWEEN 0 AND 2), -- a submission, an unfinished job, a schedule
    job_count   int         NOT NULL,                     -- how many
    body        bytea       NOT NULL,                     -- as it is sent
    accepted_at timestamptz NOT NULL DEFAULT now(),
    offered_to  text,                                     -- the region that it was sent to and may have it; NULL: none
    told        text,                                     -- JSON: what the home said, where that was not a plain yes; it is not held any more
    PRIMARY KEY (shard, tenant, id)
);
CREATE INDEX held_jobs_waiting ON held_jobs (shard, tenant, id) WHERE told IS NULL;

ALTER TABLE held_jobs ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON held_jobs USING (tenant = current_tenant());
