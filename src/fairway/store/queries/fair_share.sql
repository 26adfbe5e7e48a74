-- name: read_debts
-- Of each of these shards, in the order in which they are given.
SELECT owed.pool, owed.tenant, owed.debt_us
FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (SELECT * FROM fair_share WHERE shard = place.shard OFFSET 0) AS owed

-- name: write_debts
-- Only the owner's word counts: the term is checked in the statement.
INSERT INTO fair_share (shard, pool, tenant, debt_us)
SELECT :shard, owed.pool, owed.tenant, owed.debt_us
FROM unnest(:pools::smallint[], :tenants::int[], :debts_us::bigint[]) AS owed (pool, tenant, debt_us)
WHERE EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
ON CONFLICT (shard, pool, tenant) DO UPDATE SET debt_us = excluded.debt_us

-- name: forget_debts
DELETE FROM fair_share USING unnest(:pools::smallint[], :tenants::int[]) AS paid (pool, tenant)
WHERE (fair_share.shard, fair_share.pool, fair_share.tenant)
      BETWEEN (:shard, paid.pool, paid.tenant) AND (:shard, paid.pool, paid.tenant)
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
