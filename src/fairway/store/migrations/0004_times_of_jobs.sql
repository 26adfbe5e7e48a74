-- When a job is due is kept after it was promoted, so that lateness is a fact; last moments.

ALTER TABLE jobs ADD COLUMN not_after timestamptz;         -- the last moment to start
ALTER TABLE jobs ADD COLUMN on_late smallint;              -- and what is done after it
ALTER TABLE jobs ADD CONSTRAINT a_last_moment_has_its_rule CHECK (
    (not_after IS NULL) = (on_late IS NULL) AND on_late BETWEEN 0 AND 2
    AND (not_after IS NULL OR execute_at IS NOT NULL)
);

-- Scheduled jobs wait by second and tenant: a herd of one tenant is stepped over, not walked through.
CREATE FUNCTION due_second(moment timestamptz) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN floor(extract(epoch FROM moment AT TIME ZONE 'UTC'))::bigint;

-- The times of a job as three numbers (due, last moment, rule); nothing for one that is due at once.
CREATE FUNCTION job_timing(due timestamptz, last timestamptz, rule smallint) RETURNS bigint[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN due IS NOT NULL THEN ARRAY[
        floor(extract(epoch FROM due AT TIME ZONE 'UTC') * 1000)::bigint,
        floor(extract(epoch FROM last AT TIME ZONE 'UTC') * 1000)::bigint,
        rule::bigint
    ] END;

DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (shard, due_second(execute_at), tenant, execute_at, id) WHERE state = 0;

-- Waiting jobs that must not start after their last moment.
CREATE INDEX jobs_not_after ON jobs (shard, not_after) WHERE state <= 1 AND on_late = 1;
