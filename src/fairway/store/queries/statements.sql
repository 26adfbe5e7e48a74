-- name: read_books
-- How far each of these shards is closed and stated, and what time it is.
SELECT shard, closed_until, stated_until, now() AS now FROM billing_shards WHERE shard = ANY(:shards::int[])

-- name: close_until
-- Nothing is booked before this moment from now on: it waits for whoever books now, and whoever comes later sees it.
-- Not while something from before it is still in the log, unless it cannot be booked: that waits for nobody. Nor before
-- the shard by whose book it is logged: what comes too late there is booked as late as that one is closed.
UPDATE billing_shards SET closed_until = :until
WHERE shard = :shard AND closed_until = :since
  AND NOT EXISTS (SELECT FROM usage_log WHERE usage_log.shard = :shard AND recorded_at < :until AND refused IS NULL)
  AND (shard = book_of(shard)
       OR EXISTS (SELECT FROM billing_shards AS book WHERE book.shard = book_of(:shard) AND book.closed_until >= :until))
RETURNING shard

-- name: stated_until
-- Every statement of the month before is written. Not while a tenant moves there, nor just after: it was not among those
-- that were looked at, and its old shard no longer states it. `looked_at` is from before they were: whoever stands still
-- between the two must not take a move that ended meanwhile for an old one.
UPDATE billing_shards SET stated_until = :until
WHERE shard = :shard AND stated_until = :since AND closed_until >= :until
  AND NOT EXISTS (SELECT FROM tenant_moves WHERE to_shard = :shard
                  AND coalesce(finished_at, now()) > :looked_at::timestamptz - interval '1 minute')
RETURNING shard

-- name: tenants_to_state
-- The next tenants of a shard that were there before a month was over.
SELECT tenants.id FROM tenants, cluster
WHERE tenants.id > :after AND coalesce(tenants.shard, tenants.id % cluster.shard_count) = :shard
  AND tenants.created_at < :before
ORDER BY tenants.id LIMIT :limit

-- name: keep_statement
-- The first that is kept stays.
INSERT INTO statements (tenant, month, lines) VALUES (:tenant, :month, :lines) ON CONFLICT DO NOTHING

-- name: read_statement
SELECT closed_at, lines FROM statements WHERE tenant = :tenant AND month = :month

-- name: closed_until
-- How far the books of a tenant's shard are closed.
SELECT closed_until FROM billing_shards WHERE shard = :shard

-- name: tenant_created_at
SELECT created_at FROM tenants WHERE id = :tenant
