-- Recurring schedules. A run is known by its tick, so nobody can fire one tick twice.

CREATE TABLE schedules (
    shard          int         NOT NULL,
    tenant         int         NOT NULL,
    name           text        NOT NULL,
    cron           text,                                  -- one of these two
    every_ms       bigint,
    zone           text        NOT NULL,
    type           int         NOT NULL,                  -- the job that a tick makes
    pool           smallint    NOT NULL,
    priority       smallint    NOT NULL,
    timeout_ms     int,
    payload        bytea       NOT NULL,
    tick_argument  text,                                  -- gets the tick, in the payload
    jitter_ms      int         NOT NULL,
    starts_at      timestamptz NOT NULL,                  -- no tick up to here; intervals count from it
    ends_at        timestamptz,                           -- no tick after it
    overlap        smallint    NOT NULL CHECK (overlap BETWEEN 0 AND 3),
    catch_up       smallint    NOT NULL CHECK (catch_up BETWEEN 0 AND 2),
    window_ms      bigint      NOT NULL,                  -- of catching up with all
    paused         boolean     NOT NULL,
    source         text        NOT NULL,                  -- the app that declares it; empty: made by hand
    handled_at     timestamptz NOT NULL,                  -- ticks up to here are settled
    next_at        timestamptz,                           -- when to look again; NULL: no tick will come
    waiting_tick   timestamptz,                           -- waits for the run before it to end
    last_job       uuid,                                  -- of the newest run
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shard, tenant, name),
    CONSTRAINT cron_or_interval CHECK ((cron IS NULL) <> (every_ms IS NULL))
);
CREATE INDEX schedules_next ON schedules (shard, next_at) WHERE NOT paused;
CREATE INDEX schedules_waiting ON schedules (shard, tenant, name) WHERE waiting_tick IS NOT NULL;

CREATE TABLE schedule_runs (
    shard          int         NOT NULL,
    tenant         int         NOT NULL,
    name           text        NOT NULL,
    tick           timestamptz NOT NULL,
    cause          smallint    NOT NULL,                  -- clock, backfill, by hand
    outcome        smallint    NOT NULL,                  -- fired, skipped, waiting
    job            uuid,
    recorded_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shard, tenant, name, tick),
    CONSTRAINT a_fired_run_has_its_job CHECK ((outcome = 0) = (job IS NOT NULL))
);
CREATE INDEX schedule_runs_recorded ON schedule_runs (shard, recorded_at);
