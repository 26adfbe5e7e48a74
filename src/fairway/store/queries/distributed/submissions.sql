-- name: claim_keys
-- Those past their day were removed before, in the same transaction (`remove_lapsed_keys`).
INSERT INTO idempotency (shard, tenant, key, body_hash, job, expires_at)
SELECT wanted.shard, wanted.tenant, wanted.key, wanted.body_hash, wanted.job, now() + :keep::interval
FROM unnest(:key_shards::int[], :key_tenants::int[], :keys::text[], :body_hashes::bytea[], :jobs::uuid[])
     AS wanted (shard, tenant, key, body_hash, job)
ON CONFLICT (shard, tenant, key) DO NOTHING
RETURNING tenant, key
