-- Failures by class, the history of a job's runs, dead letters, and what restrains a failing type.

ALTER TABLE jobs
    ADD COLUMN failures     smallint[],                   -- counts by class (core/retry.py); NULL while none
    ADD COLUMN fingerprint  bigint,                       -- of a dead letter's cause; NULL when it is none, or was discarded
    ADD COLUMN history      bytea[],                      -- ends of runs but a success, as JSON texts; the last fifty
    ADD CONSTRAINT a_dead_letter_is_dead CHECK (fingerprint IS NULL OR state = 4);

-- Dead letters of a tenant: all, of a type, of a cause.
CREATE INDEX jobs_dead ON jobs (shard, tenant, id) WHERE state = 4 AND fingerprint IS NOT NULL;
CREATE INDEX jobs_dead_by_type ON jobs (shard, tenant, type, id) WHERE state = 4 AND fingerprint IS NOT NULL;
CREATE INDEX jobs_dead_by_cause ON jobs (shard, tenant, fingerprint, id) WHERE state = 4 AND fingerprint IS NOT NULL;

-- A replay or a discard of many dead letters, carried out in bounded batches by the shard's owner.
CREATE TABLE dead_letter_actions (
    shard        int         NOT NULL,
    tenant       int         NOT NULL,
    id           uuid        NOT NULL,
    kind         text        NOT NULL CHECK (kind IN ('replay', 'discard')),
    state        text        NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'aborted')),
    type         int,                                     -- the filter: what is NULL does not narrow
    pool         smallint,
    fingerprint  bigint,
    since        uuid        NOT NULL,                    -- ids from here
    before       uuid        NOT NULL,                    -- up to here
    payload      bytea,                                   -- in place of the jobs' own
    per_second   int         NOT NULL CHECK (per_second > 0),
    matched      bigint      NOT NULL,                    -- when it began
    done         bigint      NOT NULL DEFAULT 0,
    cursor       uuid        NOT NULL,                    -- everything up to here was looked at
    created_at   timestamptz NOT NULL DEFAULT now(),
    finished_at  timestamptz,
    PRIMARY KEY (shard, tenant, id)
);
CREATE INDEX dead_letter_actions_running ON dead_letter_actions (shard) WHERE state = 'running';

-- Circuits that are not closed. Every owner reads them, so that all of them hold the same jobs back.
CREATE TABLE circuits (
    tenant       int         NOT NULL,
    type         int         NOT NULL,
    dependency   text        NOT NULL,
    rest_us      bigint      NOT NULL,
    probe_at     timestamptz NOT NULL,
    opened_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, type, dependency)
);

-- Job types of a tenant that mostly fail: two tries, not five.
CREATE TABLE quarantines (
    tenant       int         NOT NULL,
    type         int         NOT NULL,
    since        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, type)
);

-- What tenants should hear of, newest last: small, and kept as long as jobs are.
CREATE TABLE events (
    tenant       int         NOT NULL,
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    at           timestamptz NOT NULL DEFAULT now(),
    kind         text        NOT NULL,
    subject      text        NOT NULL,                    -- a job type, a pool, a job
    detail       text        NOT NULL,                    -- a sentence
    PRIMARY KEY (tenant, id)
);
CREATE INDEX events_at ON events (at);
