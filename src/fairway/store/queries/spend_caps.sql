-- name: put_cap
-- What was told of this month stays told; the next look decides anew what follows from it.
INSERT INTO spend_caps (tenant, cap_micros, grace_seconds) VALUES (:tenant, :cap_micros, :grace_seconds)
ON CONFLICT (tenant) DO UPDATE
SET cap_micros = excluded.cap_micros, grace_seconds = excluded.grace_seconds, updated_at = now()

-- name: drop_cap
DELETE FROM spend_caps WHERE tenant = :tenant RETURNING tenant

-- name: read_cap
SELECT tenant, cap_micros, grace_seconds, month, stage, reached_at, now() AS now
FROM spend_caps WHERE tenant = :tenant

-- name: caps_after
-- The next caps, of tenants of these shards.
SELECT cap.tenant, cap.cap_micros, cap.grace_seconds, cap.month, cap.stage, cap.reached_at, now() AS now
FROM spend_caps AS cap JOIN tenants ON tenants.id = cap.tenant, cluster
WHERE cap.tenant > :after AND coalesce(tenants.shard, tenants.id % cluster.shard_count) = ANY(:shards::int[])
ORDER BY cap.tenant LIMIT :limit

-- name: move_cap
-- To another stage, unless somebody moved or changed it meanwhile.
UPDATE spend_caps SET month = :month, stage = :stage, reached_at = :reached_at
WHERE tenant = :tenant AND month = :old_month AND stage = :old_stage
  AND cap_micros = :cap_micros AND grace_seconds = :grace_seconds
RETURNING tenant

-- name: paused_by_caps
SELECT tenant FROM spend_caps WHERE stage = 3
