-- name: list_shards
-- Every shard: who owns it, how many tenants are at home there (of one in several shards a part is in each, the first
-- of them without part_of), how many jobs wait (no more than so many are counted).
SELECT shards.shard, shards.term, shards.owner, shards.expires_at >= now() AS has_owner,
       shards.expires_at >= now() AND shards.opened_term = shards.term AS is_open,
       coalesce(homes.tenants, 0) AS tenants, coalesce(homes.firsts, 0) AS firsts, waiting.jobs AS queued
FROM shards
LEFT JOIN (
    SELECT coalesce(tenants.shard, tenants.id % cluster.shard_count) AS shard, count(*) AS tenants,
           count(*) FILTER (WHERE tenants.part_of IS NULL) AS firsts
    FROM tenants, cluster WHERE tenants.state <> 'deleted' GROUP BY 1
) AS homes ON homes.shard = shards.shard
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (
        SELECT FROM jobs WHERE jobs.shard = shards.shard AND jobs.state = 1 LIMIT :counted_max
    ) AS counted
) AS waiting
ORDER BY shards.shard

-- name: hold_count
-- How many there are, held until the transaction ends: one makes them more at a time.
SELECT coalesce(shards, shard_count) AS shards FROM cluster FOR UPDATE

-- name: set_count
-- From here on new tenants are spread over so many.
UPDATE cluster SET shards = :shards
