-- name: add_notices
-- Notices of the platform, in the caller's transaction.
INSERT INTO event_inbox (shard, tenant, kind, subject, detail, job, facts)
SELECT coalesce(whose.shard, new.tenant % cluster.shard_count), new.tenant, new.kind, new.subject, new.detail, new.job, new.facts::jsonb
FROM cluster, unnest(:tenants::int[], :kinds::text[], :subjects::text[], :details::text[], :jobs::uuid[], :facts::text[])
     AS new (tenant, kind, subject, detail, job, facts)
     LEFT JOIN tenants AS whose ON whose.id = new.tenant

-- name: read_events
-- Chunks with positions after one, up to so many positions; in every row, where the log begins and ends. Positions have
-- no gaps and chunks a largest size, so that a range of positions is a range of the index.
WITH bounds AS MATERIALIZED (
    SELECT coalesce((SELECT head.last FROM event_heads AS head WHERE head.shard = :shard AND head.tenant = :tenant), 0) AS last,
           (SELECT oldest.first_position FROM event_log AS oldest WHERE oldest.shard = :shard AND oldest.tenant = :tenant
            ORDER BY oldest.last_position LIMIT 1) AS first,
           (SELECT next.first_position FROM event_log AS next WHERE next.shard = :shard AND next.tenant = :tenant
            AND next.last_position > :after::bigint ORDER BY next.last_position LIMIT 1) AS next
)
SELECT chunk.events, chunk.first_position, bounds.last, bounds.first, bounds.next
FROM bounds LEFT JOIN LATERAL (
    SELECT event_log.events, event_log.first_position FROM event_log
    WHERE event_log.shard = :shard AND event_log.tenant = :tenant
      AND event_log.last_position > :after::bigint
      AND event_log.last_position < greatest(:after::bigint, bounds.next - 1) + :limit::bigint + :chunk_max::bigint
      AND event_log.first_position <= greatest(:after::bigint, bounds.next - 1) + :limit::bigint
    ORDER BY event_log.last_position
) AS chunk ON true
ORDER BY chunk.first_position

-- name: last_before
-- The newest position below one that a chunk ends with: across a gap, as a restore leaves it.
SELECT event_log.last_position FROM event_log
WHERE event_log.shard = :shard AND event_log.tenant = :tenant AND event_log.last_position < :below::bigint
ORDER BY event_log.last_position DESC LIMIT 1

-- name: read_heads
-- Where the logs of these tenants end, of those that have one.
SELECT head.tenant, head.last
FROM unnest(:shards::int[], :tenants::int[]) AS asked (shard, tenant)
CROSS JOIN LATERAL (
    SELECT tenant, last FROM event_heads WHERE shard = asked.shard AND tenant = asked.tenant OFFSET 0
) AS head
