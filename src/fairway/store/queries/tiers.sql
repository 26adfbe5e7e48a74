-- name: all_tiers
SELECT name, weight, fair_group, floor_share, cap, rate_per_second, burst, depth_limit
FROM tiers ORDER BY weight, name

-- name: put_tier
-- A new tier, or other values for one there is.
INSERT INTO tiers (name, weight, fair_group, floor_share, cap, rate_per_second, burst, depth_limit)
VALUES (:name, :weight, :fair_group, :floor_share, :cap, :rate_per_second, :burst, :depth_limit)
ON CONFLICT (name) DO UPDATE SET
    weight = excluded.weight, fair_group = excluded.fair_group, floor_share = excluded.floor_share,
    cap = excluded.cap, rate_per_second = excluded.rate_per_second, burst = excluded.burst,
    depth_limit = excluded.depth_limit

-- name: touch_tenants_of_tier
-- Their terms changed with their tier: every server reads them again.
UPDATE tenants SET updated_at = now() WHERE tier = :name

-- name: all_pauses
SELECT tenant, type, pool FROM pauses

-- name: pauses_of
-- Those that name this tenant.
SELECT tenant, type, pool FROM pauses WHERE tenant = :tenant

-- name: count_other_pauses
-- Those of one tenant, besides this one.
SELECT count(*) AS others FROM pauses
WHERE tenant = :tenant AND (type, pool) <> (:type, :pool)

-- name: pause
INSERT INTO pauses (tenant, type, pool) VALUES (:tenant, :type, :pool) ON CONFLICT DO NOTHING

-- name: resume
DELETE FROM pauses WHERE tenant = :tenant AND type = :type AND pool = :pool
