-- name: claim_shards
-- Take every shard whose owner has let its term run out. Waits for the old owner's last statement,
-- which holds the row; whatever comes after it finds another term and writes nothing.
UPDATE shards SET term = term + 1, owner = :owner, owner_url = :owner_url,
                  expires_at = now() + :term_time::interval
WHERE expires_at < now()
RETURNING shard, term

-- name: renew_shards
UPDATE shards SET expires_at = now() + :term_time::interval
FROM unnest(:shards::int[], :terms::bigint[]) AS held (shard, term)
WHERE shards.shard = held.shard AND shards.term = held.term
RETURNING shards.shard, shards.term

-- name: release_shards
-- A clean stop hands over at once.
UPDATE shards SET expires_at = '-infinity'
FROM unnest(:shards::int[], :terms::bigint[]) AS held (shard, term)
WHERE shards.shard = held.shard AND shards.term = held.term

-- name: read_owners
SELECT shard, term, owner, owner_url FROM shards WHERE expires_at >= now()

-- name: database_now
SELECT clock_timestamp() AS now
