-- name: close_until
-- Each shard has a book of its own, as it lies with its log.
UPDATE billing_shards SET closed_until = :until
WHERE shard = :shard AND closed_until = :since
  AND NOT EXISTS (SELECT 1 FROM usage_log WHERE usage_log.shard = :shard AND recorded_at < :until AND refused IS NULL)
RETURNING shard
