-- What a tenant is entitled to is data: tiers, limits of its own, pauses; and the memory of fair share.

-- Weights, floors and limits by tier; a tenant may have values of its own.
CREATE TABLE tiers (
    name             text    PRIMARY KEY,
    weight           int     NOT NULL CHECK (weight BETWEEN 1 AND 100000),
    fair_group       text    NOT NULL DEFAULT '' CHECK (fair_group IN ('', 'free')),
    floor_share      int     NOT NULL DEFAULT 0 CHECK (floor_share BETWEEN 0 AND 1000),  -- per mille of the shared slots
    cap              int     CHECK (cap > 0),                                             -- jobs at once in a pool
    rate_per_second  int     NOT NULL CHECK (rate_per_second > 0),
    burst            int     NOT NULL CHECK (burst > 0),
    depth_limit      bigint  NOT NULL CHECK (depth_limit >= 0)
);

INSERT INTO tiers (name, weight, fair_group, floor_share, rate_per_second, burst, depth_limit) VALUES
    ('free',          1, 'free',  0,     10,     100, 10000000),
    ('standard',     10, '',      0,    100,    1000, 10000000),
    ('pro',         100, '',     10,  10000,  100000, 10000000),
    ('enterprise', 1000, '',      0, 100000, 1000000, 10000000);

ALTER TABLE tenants
    ADD COLUMN tier             text NOT NULL DEFAULT 'standard' REFERENCES tiers (name),
    ADD COLUMN cap              int CHECK (cap > 0),
    ADD COLUMN rate_per_second  int CHECK (rate_per_second > 0),
    ADD COLUMN burst            int CHECK (burst > 0),
    ADD COLUMN reserved         jsonb NOT NULL DEFAULT '{}',      -- pool name → slots held for this tenant
    ALTER COLUMN weight DROP NOT NULL,
    ALTER COLUMN weight DROP DEFAULT,
    ALTER COLUMN depth_limit DROP NOT NULL,
    ALTER COLUMN depth_limit DROP DEFAULT;

-- What must not start for now: all that matches the numbers given.
CREATE TABLE pauses (
    tenant       int         NOT NULL DEFAULT 0,          -- 0: of every tenant; likewise type and pool
    type         int         NOT NULL DEFAULT 0,
    pool         smallint    NOT NULL DEFAULT 0,
    since        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, type, pool),
    CONSTRAINT a_pause_names_something CHECK (tenant > 0 OR type > 0 OR pool > 0)
);

-- What tenants owe of slot-time, written every few seconds: debts survive a failover. Tenant 0 is the free group.
CREATE TABLE fair_share (
    shard        int         NOT NULL,
    pool         smallint    NOT NULL,
    tenant       int         NOT NULL,
    debt_us      bigint      NOT NULL,                    -- at weight 1
    PRIMARY KEY (shard, pool, tenant)
) WITH (fillfactor = 50);

-- A tenant may share out its own part between its customers: a lane is the hash of a job's fair_key, 0 without one.
ALTER TABLE jobs ADD COLUMN lane smallint NOT NULL DEFAULT 0;
DROP INDEX jobs_queued;
CREATE INDEX jobs_queued ON jobs (shard, pool, tenant, lane, type, priority, id) WHERE state = 1;
