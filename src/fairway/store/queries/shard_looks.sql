-- Which of many shards a loop has something to do in: one statement for all of them, one probe of an index for each.
-- LATERAL, so that each is looked up by itself whatever the statistics say; what is found is looked at shard by shard.

-- name: shards_scheduled
-- How long until the first scheduled job of each shard; below 0 and in the present second it is due.
SELECT place.shard, first.second <= due_second(now()) AS is_due, first.second - extract(epoch FROM now())::float8 AS seconds
FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (
    SELECT due_second(execute_at) AS second FROM jobs WHERE shard = place.shard AND state = 0
    ORDER BY due_second(execute_at), tenant, execute_at LIMIT 1
) AS first

-- name: shards_past_last_moments
SELECT place.shard FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (
    SELECT FROM jobs WHERE shard = place.shard AND state <= 1 AND on_late = 1 AND not_after < now()
    ORDER BY not_after LIMIT 1
) AS first

-- name: shards_queued
SELECT place.shard FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (
    SELECT FROM jobs WHERE shard = place.shard AND state = 1
    ORDER BY pool, tenant, lane, type, priority, id LIMIT 1
) AS first

-- name: shards_with_flows_owed
SELECT place.shard FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (SELECT FROM flows WHERE shard = place.shard AND owed > 0 ORDER BY tenant LIMIT 1) AS first

-- name: shards_with_outbox
SELECT place.shard FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (
    SELECT FROM outbox WHERE shard = place.shard AND refused_at IS NULL ORDER BY tenant, id LIMIT 1
) AS first

-- name: shards_with_news
SELECT place.shard FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (SELECT FROM event_inbox WHERE shard = place.shard ORDER BY tenant LIMIT 1) AS first

-- name: shards_with_usage
SELECT place.shard FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (
    SELECT FROM usage_log WHERE shard = place.shard AND refused IS NULL ORDER BY id LIMIT 1
) AS first

-- name: shards_with_webhooks
SELECT place.shard FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (SELECT FROM webhooks WHERE shard = place.shard AND enabled ORDER BY due_at LIMIT 1) AS first

-- name: shards_with_actions
SELECT place.shard FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (SELECT FROM bulk_actions WHERE shard = place.shard AND state = 'running' LIMIT 1) AS first

-- name: shards_with_checkpoints
SELECT place.shard FROM unnest(:shards::int[]) AS place (shard)
CROSS JOIN LATERAL (SELECT FROM checkpoints WHERE shard = place.shard ORDER BY tenant LIMIT 1) AS first

-- name: shards_ticking
-- With a tick that is due or waits for the run before it; and how long until the next of each shard.
SELECT place.shard, coalesce(first.next_at <= now(), false) OR waiting.is_there IS NOT NULL AS is_due,
       extract(epoch FROM first.next_at - now())::float8 AS seconds
FROM unnest(:shards::int[]) AS place (shard)
LEFT JOIN LATERAL (
    SELECT next_at FROM schedules WHERE shard = place.shard AND NOT paused AND next_at IS NOT NULL
    ORDER BY next_at LIMIT 1
) AS first ON true
LEFT JOIN LATERAL (
    SELECT true AS is_there FROM schedules WHERE shard = place.shard AND waiting_tick IS NOT NULL AND NOT paused
    ORDER BY tenant, name LIMIT 1
) AS waiting ON true
WHERE first.next_at IS NOT NULL OR waiting.is_there
