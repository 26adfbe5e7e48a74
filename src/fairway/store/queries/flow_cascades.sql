-- name: next_owed_tenant
SELECT min(tenant) AS tenant FROM flows WHERE shard = :shard AND owed > 0 AND tenant > :after

-- name: read_owed
SELECT id::text AS id, owed FROM flows WHERE shard = :shard AND tenant = :tenant AND owed > 0 LIMIT :limit

-- name: clear_owed
UPDATE flows SET owed = 0 WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[])
