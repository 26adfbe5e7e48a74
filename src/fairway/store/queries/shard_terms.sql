-- name: terms_in_force
-- Which of these shards still have the term that their owner believes in.
SELECT held.shard FROM unnest(:owned::int[], :terms::bigint[]) AS owned (shard, term)
CROSS JOIN LATERAL (SELECT shards.shard FROM shards WHERE shard = owned.shard AND term = owned.term) AS held
