-- Names of job types are counted by who brought them, and go when nobody refers to them any more.

ALTER TABLE job_types
    ADD COLUMN shared       boolean     NOT NULL DEFAULT false,        -- of the house: a shared worker or an operator said it
    ADD COLUMN by_hand      boolean     NOT NULL DEFAULT false,        -- an operator did: it stays
    ADD COLUMN said_at      timestamptz NOT NULL DEFAULT now(),        -- by the house; then when it ceased to be the house's
    ADD COLUMN renounced_at timestamptz,                               -- when some tenant was last found not to use it any more
    ADD COLUMN let_go_at    timestamptz;                               -- when nobody was; it goes for good some days later

-- Of names that are here already nobody knows whose they are: none goes before the jobs of today have gone.
UPDATE job_types SET shared = registered_at IS NOT NULL,
                     by_hand = name IN (SELECT subject FROM audit WHERE action = 'put_job_type');

-- Which tenant has named which type, where the house has not: so many of each tenant.
CREATE TABLE tenant_types (
    tenant       int         NOT NULL,
    type         int         NOT NULL REFERENCES job_types (id),
    by_worker    boolean     NOT NULL,                     -- its own worker runs it; else a job, a schedule or a pause names it
    named_at     timestamptz NOT NULL DEFAULT now(),       -- when it was last seen to be used
    let_go_at    timestamptz,                              -- when it was found not to be; looked at once more before it goes
    PRIMARY KEY (tenant, type)
);
CREATE INDEX tenant_types_type ON tenant_types (type);
