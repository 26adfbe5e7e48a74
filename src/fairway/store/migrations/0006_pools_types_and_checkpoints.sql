-- Long jobs: checkpoints, pools as data, the registry of job types, and an audit of who changed what.

-- Checkpoints of long jobs: a row is written when the object is safe, by the holder of the lease.

CREATE TABLE checkpoints (
    shard        int         NOT NULL,
    tenant       int         NOT NULL,
    job          uuid        NOT NULL,
    epoch        bigint      NOT NULL,                    -- of the lease it was saved under
    number       int         NOT NULL,                    -- counts within that run
    object       text        NOT NULL,                    -- its name in object storage
    size_bytes   bigint      NOT NULL CHECK (size_bytes >= 0),
    sha256       bytea       NOT NULL,
    saved_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shard, tenant, job, epoch, number)
);

-- Pools by duration, which are measured, and by resource, which operators add.
CREATE TABLE pools (
    number                 smallint          PRIMARY KEY CHECK (number > 0),
    name                   text              NOT NULL UNIQUE CHECK (name ~ '^[a-z][a-z0-9_-]{0,31}$'),
    lease_mode             text              NOT NULL CHECK (lease_mode IN ('lazy', 'durable')),
    lease_seconds          double precision  NOT NULL CHECK (lease_seconds >= 1),
    slots_default          int               NOT NULL CHECK (slots_default > 0),
    run_mode               text              CHECK (run_mode IN ('loop', 'thread', 'process')),
    checkpoint             text              NOT NULL CHECK (checkpoint IN ('none', 'optional', 'expected')),
    attempts_max           int               NOT NULL CHECK (attempts_max > 0),
    pickup_target_seconds  double precision  NOT NULL CHECK (pickup_target_seconds > 0),
    estimate_seconds       double precision  NOT NULL CHECK (estimate_seconds > 0),
    fits_seconds           double precision,                -- of a pool of duration: the longest run that belongs
    overrun_seconds        double precision,                -- past this a run does harm to the others
    labels                 text[]            NOT NULL DEFAULT '{}',   -- a worker must have them all
    reserved_share         int               NOT NULL DEFAULT 800 CHECK (reserved_share BETWEEN 0 AND 950)
);

INSERT INTO pools (number, name, lease_mode, lease_seconds, slots_default, run_mode, checkpoint, attempts_max,
                   pickup_target_seconds, estimate_seconds, fits_seconds, overrun_seconds) VALUES
    (1, 'short',  'lazy',     10, 50, NULL,      'none',     5, 0.5, 0.3,         1,   10),
    (2, 'medium', 'durable', 300,  8, NULL,      'optional', 3, 5,   10,         60,  300),
    (3, 'long',   'durable',  90,  2, 'process', 'expected', 2, 60,  10,  316224000, NULL);

-- What job types were registered with, and where the clock says they belong.
ALTER TABLE job_types
    ADD COLUMN pool             smallint REFERENCES pools (number),
    ADD COLUMN timeout_ms       int CHECK (timeout_ms > 0),
    ADD COLUMN attempts_max     int CHECK (attempts_max > 0),
    ADD COLUMN dependency       text NOT NULL DEFAULT '',
    ADD COLUMN warm_key         text NOT NULL DEFAULT '',
    ADD COLUMN version          text NOT NULL DEFAULT '',
    ADD COLUMN schema           bytea,                      -- JSON Schema of the payload
    ADD COLUMN registered_at    timestamptz,                -- NULL: a job of it was submitted, no more
    ADD COLUMN measured_pool    smallint REFERENCES pools (number),
    ADD COLUMN measured_p95_ms  bigint,
    ADD COLUMN moved_at         timestamptz,
    ADD COLUMN updated_at       timestamptz NOT NULL DEFAULT now();
CREATE INDEX job_types_updated ON job_types (updated_at);

-- Who changed what, for operators.
CREATE TABLE audit (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at           timestamptz NOT NULL DEFAULT now(),
    actor        text        NOT NULL,                    -- a key, or the platform itself
    action       text        NOT NULL,
    subject      text        NOT NULL,
    detail       text        NOT NULL                     -- a sentence
);
