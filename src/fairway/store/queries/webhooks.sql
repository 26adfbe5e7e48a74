-- name: add_webhook
INSERT INTO webhooks (shard, tenant, id, url, kinds, description, enabled, secret, position)
VALUES (:shard, :tenant, :id, :url, :kinds, :description, :enabled, :secret, :position)

-- name: count_webhooks
SELECT count(*) AS count FROM webhooks WHERE shard = :shard AND tenant = :tenant

-- name: list_webhooks
SELECT * FROM webhooks WHERE shard = :shard AND tenant = :tenant ORDER BY created_at, id

-- name: read_webhook
SELECT * FROM webhooks WHERE shard = :shard AND tenant = :tenant AND id = :id

-- name: change_webhook
-- One that is switched on begins anew: what failed before says nothing of it any more.
UPDATE webhooks SET
    url = :url, kinds = :kinds, description = :description, enabled = :enabled,
    position = :position, failures = :failures, failing_since = :failing_since,
    disabled_because = :disabled_because, updated_at = now(),
    due_at = CASE WHEN :failures::int > 0 THEN coalesce(due_at, now()) ELSE now() END
WHERE shard = :shard AND tenant = :tenant AND id = :id

-- name: lock_webhook
-- Held by whoever writes deliveries of it, until his transaction ends.
SELECT * FROM webhooks WHERE shard = :shard AND tenant = :tenant AND id = :id FOR UPDATE

-- name: delete_webhook
DELETE FROM webhooks WHERE shard = :shard AND tenant = :tenant AND id = :id RETURNING id

-- name: delete_deliveries
DELETE FROM webhook_deliveries WHERE shard = :shard AND tenant = :tenant AND webhook = :id

-- name: rotate_secret
-- The present one goes on signing beside the new one for a while.
UPDATE webhooks SET
    old_secret = CASE WHEN :seconds::float8 > 0 THEN secret END,
    old_secret_until = CASE WHEN :seconds::float8 > 0 THEN now() + make_interval(secs => :seconds::float8) END,
    secret = :secret, updated_at = now()
WHERE shard = :shard AND tenant = :tenant AND id = :id
RETURNING old_secret_until

-- name: count_test
UPDATE webhooks SET tests = tests + 1, due_at = now()
WHERE shard = :shard AND tenant = :tenant AND id = :id
RETURNING tests

-- name: wake_webhook
-- Something of it is to be sent now, or when its receiver may be called again.
UPDATE webhooks SET due_at = CASE WHEN failures > 0 THEN coalesce(due_at, now()) ELSE now() END
WHERE shard = :shard AND tenant = :tenant AND id = :id

-- name: rewind
-- Back to a position of the log: what stands after it is written down again.
UPDATE webhooks SET position = least(position, :position)
WHERE shard = :shard AND tenant = :tenant AND id = :id

-- name: webhooks_behind
-- Whose tenant's log goes on after what is written down for it, in turn. Those of a suspended tenant stand still.
SELECT w.* FROM webhooks AS w JOIN event_heads AS h ON h.shard = w.shard AND h.tenant = w.tenant
WHERE w.shard = :shard AND w.enabled AND h.last > w.position AND (w.tenant, w.id) > (:tenant, :after)
  AND EXISTS (SELECT FROM tenants AS whose WHERE whose.id = w.tenant AND whose.state = 'active')
ORDER BY w.tenant, w.id LIMIT :limit

-- name: move_position
UPDATE webhooks SET position = :position, due_at = CASE WHEN :is_due THEN least(due_at, now()) ELSE due_at END
WHERE shard = :shard AND tenant = :tenant AND id = :id

-- name: due_webhooks
-- Which have something to be sent, those that wait longest first; none whose turn it is already, and none whose tenant
-- has as many turns as it may. Those below 0 are the operators' own.
SELECT * FROM webhooks
WHERE shard = :shard AND enabled AND due_at <= now() AND id <> ALL(:busy::uuid[])
  AND CASE WHEN failures > 0 THEN :with_failing AND tenant <> ALL(:slow_tenants::int[])
           ELSE :with_others AND tenant <> ALL(:quick_tenants::int[]) END
  AND (tenant < 0 OR EXISTS (SELECT FROM tenants AS whose WHERE whose.id = webhooks.tenant AND whose.state = 'active'))
ORDER BY due_at LIMIT :limit

-- name: next_webhook
-- How long until one of them has something to be sent, by the database's clock.
SELECT extract(epoch FROM due_at - now())::float8 AS seconds FROM webhooks
WHERE shard = :shard AND enabled AND due_at > now()
  AND (tenant < 0 OR EXISTS (SELECT FROM tenants AS whose WHERE whose.id = webhooks.tenant AND whose.state = 'active'))
ORDER BY due_at LIMIT 1

-- name: lock_webhooks
-- In one order for all; whose address is another than that which was called is told by it.
SELECT w.id::text AS id, w.url, w.failures, w.failing_since FROM webhooks AS w
JOIN unnest(:tenants::int[], :ids::uuid[]) AS done (tenant, id) ON w.tenant = done.tenant AND w.id = done.id
WHERE w.shard = :shard ORDER BY w.tenant, w.id FOR UPDATE OF w

-- name: settle_webhooks
-- How their receivers do, and when something of them is to be sent next.
UPDATE webhooks AS w SET
    failures = done.failures, failing_since = done.failing_since,
    enabled = w.enabled AND done.disabled_because = '',
    disabled_because = coalesce(nullif(done.disabled_because, ''), w.disabled_because),
    due_at = (
        SELECT greatest(d.next_at, now() + make_interval(secs => done.rest_seconds))
        FROM webhook_deliveries AS d
        WHERE d.shard = :shard AND d.tenant = done.tenant AND d.webhook = done.id AND d.state = 0
        ORDER BY d.next_at LIMIT 1
    )
FROM unnest(:tenants::int[], :ids::uuid[], :failures::int[], :failing_since::timestamptz[],
            :rest_seconds::float8[], :disabled_because::text[])
     AS done (tenant, id, failures, failing_since, rest_seconds, disabled_because)
WHERE w.shard = :shard AND w.tenant = done.tenant AND w.id = done.id

-- name: switch_off
-- By what another part of its tenant found out of its receiver.
UPDATE webhooks SET enabled = false, disabled_because = :because WHERE shard = :shard AND tenant = :tenant AND id = :id
