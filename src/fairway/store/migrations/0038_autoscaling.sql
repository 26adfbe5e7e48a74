-- How many workers each pool should have: what operators said, what was decided last, and why.

-- One row for each pool that somebody said something about; the state is written by the server that decides.
CREATE TABLE autoscale_pools (
    pool               text        PRIMARY KEY,
    mode               text        NOT NULL DEFAULT 'off' CHECK (mode IN ('off', 'dry_run', 'on')),
    minimum_workers    int         NOT NULL CHECK (minimum_workers >= 0),
    maximum_workers    int         NOT NULL CHECK (maximum_workers >= minimum_workers),
    down_after_seconds float8,                            -- NULL: by the pool's rules
    override_workers   int,                               -- NULL, with the next two: nobody overrides it
    override_until     timestamptz,
    override_by        text,
    round              bigint      NOT NULL DEFAULT 0,    -- grows with every change of the state
    wanted_workers     int,                               -- NULL: nothing is decided
    short_of           int         NOT NULL DEFAULT 0,    -- workers needed beyond the maximum
    closed             text[]      NOT NULL DEFAULT '{}', -- workers that get no more jobs
    leaving            text[]      NOT NULL DEFAULT '{}'  -- of those, the ones that were idle and may be ended
) WITH (fillfactor = 50);

-- Every change of mind with the numbers it was made from; the newest are kept.
CREATE TABLE autoscale_decisions (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL DEFAULT now(),
    pool          text        NOT NULL,
    from_workers  int         NOT NULL,
    to_workers    int         NOT NULL,
    code          text        NOT NULL,
    reason        text        NOT NULL,
    dry_run       boolean     NOT NULL,
    facts         jsonb       NOT NULL
);
CREATE INDEX autoscale_decisions_pool ON autoscale_decisions (pool, id);
