-- name: claim_unique
-- Those that nobody holds any more were removed before, in the same transaction (`remove_unheld`).
INSERT INTO unique_jobs (shard, tenant, digest, job, states, expires_at)
SELECT :shard, wanted.tenant, wanted.digest, wanted.job, wanted.states, now() + wanted.within
FROM unnest(:tenants::int[], :digests::bytea[], :jobs::uuid[], :states::smallint[], :withins::interval[])
     AS wanted (tenant, digest, job, states, within)
ON CONFLICT (shard, tenant, digest) DO NOTHING
RETURNING tenant, digest, job::text AS job

-- name: read_unique
-- The claim that met them has locked none here.
SELECT held.tenant, held.digest, held.job::text AS job, held.states, held.since
FROM unnest(:tenants::int[], :digests::bytea[]) AS wanted (tenant, digest)
JOIN unique_jobs AS held
  ON held.shard = :shard AND held.tenant = wanted.tenant AND held.digest = wanted.digest
WHERE held.shard = :shard
FOR NO KEY UPDATE OF held
