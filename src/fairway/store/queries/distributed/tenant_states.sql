-- name: hold_lapsed
-- Each shard has a book of its own, as it lies with its log.
SELECT id FROM tenants
WHERE id = :tenant AND state = 'deleted' AND state_since <= now() - :kept::interval
  AND NOT EXISTS (SELECT 1 FROM usage_log WHERE usage_log.shard = :shard AND :tenant = ANY(tenant_ids))
  AND NOT EXISTS (SELECT 1 FROM usage_hours WHERE usage_hours.tenant = :tenant
                  AND hour >= (SELECT stated_until FROM billing_shards WHERE billing_shards.shard = :shard))
FOR UPDATE
