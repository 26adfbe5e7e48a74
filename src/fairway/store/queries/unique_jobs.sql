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
    SET job = excluded.job, states = excluded.states, expires_at = excluded.expires_at
    WHERE held.job = excluded.job OR held.expires_at < now() OR EXISTS (
        SELECT FROM jobs WHERE jobs.shard = held.shard AND jobs.tenant = held.tenant AND jobs.id = held.job
                           AND (held.states >> jobs.state::int) & 1 = 0
    ) OR held.job < :gone_before::uuid AND held.states & :ends::int = 0 AND NOT EXISTS (
        SELECT FROM jobs WHERE jobs.shard = held.shard AND jobs.tenant = held.tenant AND jobs.id = held.job OFFSET 0
    )
RETURNING tenant, digest, job::text AS job

-- name: read_unique
-- Who holds the names that could not be taken. They stay locked until the end, so nobody can let go of one meanwhile.
SELECT held.tenant, held.digest, held.job::text AS job
FROM unnest(:tenants::int[], :digests::bytea[]) AS wanted (tenant, digest)
JOIN unique_jobs AS held
  ON held.shard = :shard AND held.tenant = wanted.tenant AND held.digest = wanted.digest

-- name: forget_unique
-- Bounded: at most so many a round. A name that is taken anew meanwhile is asked again, and stays.
DELETE FROM unique_jobs
WHERE shard = :shard AND expires_at < now() AND ctid = ANY(ARRAY(
    SELECT ctid FROM unique_jobs
    WHERE shard = :shard AND expires_at < now() ORDER BY expires_at LIMIT :limit
))
