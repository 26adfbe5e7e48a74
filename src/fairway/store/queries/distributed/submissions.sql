-- Rows that come from the shards' own table are written by their node, in one command. What comes from nowhere passes by way
-- of the coordinator, which copies it: in two phases, with three writes to disk instead of one.

-- name: insert_jobs
INSERT INTO jobs (shard, id, tenant, type, pool, priority, lane, state, timeout_ms, payload)
SELECT shards.shard, new.id, new.tenant, new.type, new.pool, new.priority, new.lane, :state::smallint, new.timeout_ms,
       new.payload
FROM shards JOIN (
    SELECT unnest(:shards::text::int[]) AS shard, unnest(:ids::text::uuid[]) AS id, unnest(:tenants::text::int[]) AS tenant,
           unnest(:types::text::int[]) AS type, unnest(:pools::text::smallint[]) AS pool,
           unnest(:priorities::text::smallint[]) AS priority, unnest(:lanes::text::smallint[]) AS lane,
           unnest(:timeouts_ms::text::int[]) AS timeout_ms, unnest(:payloads::bytea[]) AS payload
) AS new ON new.shard = shards.shard
WHERE shards.shard = ANY(:owned::int[])

-- name: insert_traced_jobs
INSERT INTO jobs (shard, id, tenant, type, pool, priority, lane, state, timeout_ms, payload, trace)
SELECT shards.shard, new.id, new.tenant, new.type, new.pool, new.priority, new.lane, :state::smallint, new.timeout_ms,
       new.payload, new.trace
FROM shards JOIN (
    SELECT unnest(:shards::text::int[]) AS shard, unnest(:ids::text::uuid[]) AS id, unnest(:tenants::text::int[]) AS tenant,
           unnest(:types::text::int[]) AS type, unnest(:pools::text::smallint[]) AS pool,
           unnest(:priorities::text::smallint[]) AS priority, unnest(:lanes::text::smallint[]) AS lane,
           unnest(:timeouts_ms::text::int[]) AS timeout_ms, unnest(:payloads::bytea[]) AS payload, unnest(:traces::bytea[]) AS trace
) AS new ON new.shard = shards.shard
WHERE shards.shard = ANY(:owned::int[])

-- name: claim_keys
-- Those past their day were removed before, in the same transaction (`remove_lapsed_keys`).
INSERT INTO idempotency (shard, tenant, key, body_hash, job, expires_at)
SELECT wanted.shard, wanted.tenant, wanted.key, wanted.body_hash, wanted.job, now() + :keep::interval
FROM unnest(:key_shards::int[], :key_tenants::int[], :keys::text[], :body_hashes::bytea[], :jobs::uuid[])
     AS wanted (shard, tenant, key, body_hash, job)
ON CONFLICT (shard, tenant, key) DO NOTHING
RETURNING tenant, key
