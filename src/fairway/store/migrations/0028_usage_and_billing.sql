-- What jobs used, by the hour; what that costs; and what a month came to.

-- Ends of runs as they were recorded: one row for a batch, written by the statement that records it, taken apart soon after.
CREATE TABLE usage_log (
    shard        int         NOT NULL,
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    recorded_at  timestamptz NOT NULL DEFAULT now(),
    tenant_ids   int[]       NOT NULL,                    -- side by side with the next: one item a run
    pool_ids     smallint[]  NOT NULL,
    type_ids     int[]       NOT NULL,
    billed_us    bigint[]    NOT NULL,
    unbilled_us  bigint[],                                -- NULL, as are the next: of successes, which are all billed
    are_ends     boolean[],                               -- of the job, too; of successes: all
    are_attempts boolean[],                               -- that are billed; of successes: all
    ended_ats    timestamptz[],                           -- of successes: when they were recorded
    PRIMARY KEY (shard, id)
) WITH (                                                  -- rows stay for a moment, and as a whole
    toast_tuple_target = 8160,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);

-- Slot-time by tenant, hour, pool and job type: kept when the jobs are gone.
CREATE TABLE usage_hours (
    tenant       int         NOT NULL,
    hour         timestamptz NOT NULL,                    -- its beginning
    pool         smallint    NOT NULL,
    type         int         NOT NULL,
    jobs_ended   bigint      NOT NULL,
    attempts     bigint      NOT NULL,                    -- runs that ended and are billed
    billed_us    bigint      NOT NULL,
    unbilled_us  bigint      NOT NULL,                    -- of runs that the platform cut short
    PRIMARY KEY (tenant, hour, pool, type)
) WITH (fillfactor = 70);
CREATE INDEX usage_hours_hour ON usage_hours (hour);

-- How far each shard's books are closed: nothing is booked before it any more.
CREATE TABLE billing_shards (
    shard         int         PRIMARY KEY,
    closed_until  timestamptz NOT NULL,
    stated_until  timestamptz NOT NULL                    -- statements of the months before are written
);

-- The price list: what is there is never changed. '*': of every pool that has none of its own.
CREATE TABLE prices (
    pool                text        NOT NULL CHECK (pool = '*' OR pool ~ '^[a-z][a-z0-9_-]{0,31}$'),
    valid_from          timestamptz NOT NULL,             -- an hour's beginning
    base_fee_micros     bigint      NOT NULL CHECK (base_fee_micros >= 0),     -- a month
    slot_second_micros  bigint      NOT NULL CHECK (slot_second_micros >= 0),
    added_at            timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pool, valid_from),
    CONSTRAINT from_an_hour CHECK (valid_from = date_trunc('hour', valid_from, 'UTC'))
);

-- What a month came to, in the words of then.
CREATE TABLE statements (
    tenant       int         NOT NULL,
    month        date        NOT NULL,                    -- its first day
    closed_at    timestamptz NOT NULL DEFAULT now(),
    lines        bytea       NOT NULL,                    -- JSON text of a list
    PRIMARY KEY (tenant, month)
);

-- What a tenant may spend in a month, and how far it was told that it has.
CREATE TABLE spend_caps (
    tenant         int         PRIMARY KEY REFERENCES tenants (id),
    cap_micros     bigint      NOT NULL CHECK (cap_micros >= 0),
    grace_seconds  int         NOT NULL CHECK (grace_seconds >= 0),
    month          date        NOT NULL DEFAULT '1970-01-01',         -- of what follows
    stage          smallint    NOT NULL DEFAULT 0 CHECK (stage BETWEEN 0 AND 3),  -- below, near, reached, paused
    reached_at     timestamptz,
    updated_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT what_is_reached_has_its_time CHECK ((stage >= 2) = (reached_at IS NOT NULL))
);

ALTER TABLE usage_hours          ENABLE ROW LEVEL SECURITY;
ALTER TABLE statements           ENABLE ROW LEVEL SECURITY;
ALTER TABLE spend_caps           ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON usage_hours         USING (tenant = current_tenant());
CREATE POLICY of_tenant ON statements          USING (tenant = current_tenant());
CREATE POLICY of_tenant ON spend_caps          USING (tenant = current_tenant());
