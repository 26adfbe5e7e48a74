-- name: stale_names
-- Names are with the coordinator; what refers to them lies with the shard.
WITH used AS MATERIALIZED (
    SELECT type FROM schedules WHERE shard = :shard AND tenant = :tenant
    UNION SELECT type FROM bulk_actions WHERE shard = :shard AND tenant = :tenant AND type IS NOT NULL
)
SELECT named.type, named.let_go_at IS NOT NULL AS is_let_go
FROM tenant_types AS named
WHERE named.tenant = :tenant
  AND ((named.let_go_at IS NULL AND named.named_at < now() - :unused::interval)
       OR named.let_go_at < now() - :kept::interval)
  AND named.type NOT IN (SELECT type FROM used)
  AND NOT EXISTS (SELECT 1 FROM pauses AS p WHERE p.tenant = :tenant AND p.type = named.type)
  AND NOT EXISTS (SELECT 1 FROM circuits AS c WHERE c.tenant = :tenant AND c.type = named.type)
  AND NOT EXISTS (SELECT 1 FROM quarantines AS q WHERE q.tenant = :tenant AND q.type = named.type)
ORDER BY named.type LIMIT :limit
