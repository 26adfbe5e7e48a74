-- name: claim_unique
-- Take each (tenant, digest) that nobody holds: it is new, past its time, or of a job in none of the states that were
-- named. That is believed only of a job that is seen: one that was written a moment ago may not be. But one that is as
-- old as `:gone_before` and not there had ended, and was forgotten: where no end counts, it holds nothing. (OFFSET: looked up
-- by its key, never by hashing all jobs.)
-- Rows come back only for those taken, a second try of the same job included.
INSERT INTO unique_jobs AS held (shard, tenant, digest, job, states, expires_at)
SELECT :shard, wanted.tenant, wanted.digest, wanted.job, wanted.states, now() + wanted.within
FROM unnest(:tenants::int[], :digests::bytea[], :jobs::uuid[], :states::smallint[], :withins::interval[])
     AS wanted (tenant, digest, job, states, within)
ON CONFLICT (shard, tenant, digest) DO UPDATE
    SET job = excluded.job, states = excluded.states, expires_at = excluded.expires_at, since = NULL
    WHERE held.job = excluded.job OR held.expires_at < now() OR EXISTS (
        SELECT FROM jobs WHERE jobs.shard = held.shard AND jobs.tenant = held.tenant AND jobs.id = held.job
                           AND (held.states >> jobs.state::int) & 1 = 0
    ) OR held.job < :gone_before::uuid AND held.states & :ends::int = 0 AND NOT EXISTS (
        SELECT FROM jobs WHERE jobs.shard = held.shard AND jobs.tenant = held.tenant AND jobs.id = held.job OFFSET 0
    )
RETURNING tenant, digest, job::text AS job

-- name: read_unique
-- Who holds the names that could not be taken. They stay locked until the end, so nobody can let go of one meanwhile.
SELECT held.tenant, held.digest, held.job::text AS job, held.states, held.since
FROM unnest(:tenants::int[], :digests::bytea[]) AS wanted (tenant, digest)
JOIN unique_jobs AS held
  ON held.shard = :shard AND held.tenant = wanted.tenant AND held.digest = wanted.digest

-- name: lock_waiting
-- Of these jobs those that wait, as they are until the end of the transaction. One that runs, or has ended, is not held
-- up. (`state + 0`, so that they are looked up by key.)
SELECT job.flows IS NOT NULL OR coalesce(job.execute_at = '9999-01-01 00:00+00', false) AS in_flow,
       job.state = 1 OR job.execute_at <= now() AS is_due, job.deliveries > 0 AS has_run,
       job.id::text AS id, job.tenant, job.pool, job.type, job.priority, job.lane
FROM unnest(:tenants::int[], :ids::uuid[]) AS asked (tenant, id)
CROSS JOIN LATERAL (
    SELECT * FROM jobs WHERE shard = :shard AND tenant = asked.tenant AND id = asked.id AND jobs.state + 0 < 2
    OFFSET 0 FOR NO KEY UPDATE
) AS job

-- name: hand_over_unique
-- Names that are locked here, and go to other jobs.
INSERT INTO unique_jobs AS held (shard, tenant, digest, job, states, expires_at, since)
SELECT :shard, wanted.tenant, wanted.digest, wanted.job, wanted.states, now() + wanted.within, wanted.since
FROM unnest(:tenants::int[], :digests::bytea[], :jobs::uuid[], :states::smallint[], :withins::interval[],
            :sinces::timestamptz[]) AS wanted (tenant, digest, job, states, within, since)
ON CONFLICT (shard, tenant, digest) DO UPDATE
    SET job = excluded.job, states = excluded.states, expires_at = excluded.expires_at, since = excluded.since

-- name: forget_unique
-- Bounded: at most so many a round. A name that is taken anew meanwhile is asked again, and stays.
DELETE FROM unique_jobs
WHERE shard = :shard AND expires_at < now() AND ctid = ANY(ARRAY(
    SELECT ctid FROM unique_jobs
    WHERE shard = :shard AND expires_at < now() ORDER BY expires_at LIMIT :limit
))
