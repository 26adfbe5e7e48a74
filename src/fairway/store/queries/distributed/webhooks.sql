-- Tenants are with the coordinator: webhooks of those that stand still are left out after a page was read, so a page is
-- read longer than it is asked for.

-- name: change_webhook
UPDATE webhooks SET
    url = :url, kinds = :kinds, description = :description, enabled = :enabled,
    position = :position, failures = :failures, failing_since = :failing_since,
    disabled_because = :disabled_because, updated_at = now(),
    due_at = (SELECT given.moment
              FROM (VALUES (1, CASE WHEN :failures::int > 0 THEN due_at END), (2, now())) AS given (number, moment)
              WHERE given.moment IS NOT NULL ORDER BY given.number LIMIT 1)
WHERE shard = :shard AND tenant = :tenant AND id = :id

-- name: wake_webhook
UPDATE webhooks SET due_at = (
    SELECT given.moment FROM (VALUES (1, CASE WHEN failures > 0 THEN due_at END), (2, now())) AS given (number, moment)
    WHERE given.moment IS NOT NULL ORDER BY given.number LIMIT 1)
WHERE shard = :shard AND tenant = :tenant AND id = :id

-- name: webhooks_behind
WITH behind AS MATERIALIZED (
    SELECT w.* FROM webhooks AS w JOIN event_heads AS h ON h.shard = w.shard AND h.tenant = w.tenant
    WHERE w.shard = :shard AND h.shard = :shard AND w.enabled AND h.last > w.position AND (w.tenant, w.id) > (:tenant, :after)
    ORDER BY w.tenant, w.id LIMIT 1000 + :limit
)
SELECT behind.* FROM behind
WHERE behind.tenant IN (SELECT whose.id FROM tenants AS whose WHERE whose.state = 'active')
ORDER BY behind.tenant, behind.id LIMIT :limit

-- name: move_position
UPDATE webhooks SET position = :position, due_at = least(due_at, (SELECT now() WHERE :is_due))
WHERE shard = :shard AND tenant = :tenant AND id = :id

-- name: due_webhooks
WITH due AS MATERIALIZED (
    SELECT * FROM webhooks
    WHERE shard = :shard AND enabled AND due_at <= now() AND id <> ALL(:busy::uuid[])
      AND CASE WHEN failures > 0 THEN :with_failing AND tenant <> ALL(:slow_tenants::int[])
               ELSE :with_others AND tenant <> ALL(:quick_tenants::int[]) END
    ORDER BY due_at LIMIT 1000 + :limit
)
SELECT due.* FROM due
WHERE due.tenant < 0 OR due.tenant IN (SELECT whose.id FROM tenants AS whose WHERE whose.state = 'active')
ORDER BY due.due_at LIMIT :limit

-- name: next_webhook
WITH soon AS MATERIALIZED (
    SELECT tenant, due_at FROM webhooks WHERE shard = :shard AND enabled AND due_at > now() ORDER BY due_at LIMIT 1000
)
SELECT extract(epoch FROM soon.due_at - now())::float8 AS seconds FROM soon
WHERE soon.tenant < 0 OR soon.tenant IN (SELECT whose.id FROM tenants AS whose WHERE whose.state = 'active')
ORDER BY soon.due_at LIMIT 1
