-- What `claim_keys` and `claim_unique` do in one statement on plain PostgreSQL: there a row that nobody holds any more is
-- taken as it is. Where the moment may not stand in ON CONFLICT it is removed first, in the same transaction.

-- name: remove_lapsed_keys
DELETE FROM idempotency AS held
USING unnest(:key_shards::int[], :key_tenants::int[], :keys::text[]) AS wanted (shard, tenant, key)
WHERE held.shard = ANY(:key_shards::int[])
  AND held.shard = wanted.shard AND held.tenant = wanted.tenant AND held.key = wanted.key AND held.expires_at < now()

-- name: remove_unheld
DELETE FROM unique_jobs AS held
USING unnest(:tenants::int[], :digests::bytea[], :jobs::uuid[]) AS wanted (tenant, digest, job)
WHERE held.shard = :shard AND held.tenant = wanted.tenant AND held.digest = wanted.digest
  AND (held.job = wanted.job OR held.expires_at < now() OR EXISTS (
      SELECT 1 FROM jobs WHERE jobs.shard = :shard AND jobs.tenant = held.tenant AND jobs.id = held.job
                           AND (held.states >> jobs.state::int) & 1 = 0
  ) OR held.job < :gone_before::uuid AND held.states & :ends::int = 0 AND NOT EXISTS (
      SELECT 1 FROM jobs WHERE jobs.shard = :shard AND jobs.tenant = held.tenant AND jobs.id = held.job
  ))
