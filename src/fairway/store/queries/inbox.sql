-- name: tenants_with_news
-- Which tenants have events to be moved: from one to the next, however many each has.
WITH RECURSIVE found AS (
    (SELECT tenant FROM event_inbox WHERE shard = :shard AND tenant > :after ORDER BY tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT event_inbox.tenant FROM event_inbox
            WHERE event_inbox.shard = :shard AND event_inbox.tenant > found.tenant
            ORDER BY event_inbox.tenant LIMIT 1)
    FROM found WHERE found.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL LIMIT :limit

-- name: move_events
-- The oldest events of these tenants, so many of each, out of the inbox and to the ends of their logs: a chunk for each.
-- All of it or nothing, and only for the owner of the shard. Two that move at once take turns: the rows that the first
-- takes are the first that the second waits for, and what is gone by then is not moved again.
WITH moved AS (
    DELETE FROM event_inbox AS inbox
    USING (
        SELECT oldest.tenant, oldest.id
        FROM unnest(:tenants::int[]) AS turn (tenant)
        CROSS JOIN LATERAL (
            SELECT tenant, id FROM event_inbox WHERE shard = :shard AND tenant = turn.tenant ORDER BY id LIMIT :each
        ) AS oldest
    ) AS taken
    WHERE (inbox.shard, inbox.tenant, inbox.id) BETWEEN (:shard, taken.tenant, taken.id) AND (:shard, taken.tenant, taken.id)
      AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
    RETURNING inbox.tenant, inbox.id, inbox.at, inbox.kind, inbox.job, inbox.type, inbox.subject, inbox.detail,
              inbox.state, inbox.attempt, inbox.pool, inbox.ran_us, inbox.due_at, inbox.facts
), packed AS (
    SELECT moved.tenant, count(*) AS events_count, convert_to(json_agg(json_build_array(
               floor(extract(epoch FROM moved.at) * 1000000)::bigint, moved.kind, moved.job,
               coalesce(moved.subject, job_types.name, ''),
               json_strip_nulls(json_build_object(
                   'state', (ARRAY['scheduled', 'queued', 'running', 'succeeded', 'dead', 'cancelled', 'expired'])[moved.state + 1],
                   'attempt', moved.attempt, 'pool', pools.name, 'ran_ms', moved.ran_us / 1000.0::float8,
                   'due_at', to_char(moved.due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                   'detail', moved.detail, 'amount', moved.facts ->> 'amount', 'cap', moved.facts ->> 'cap',
                   'currency', moved.facts ->> 'currency'))
           ) ORDER BY moved.id)::text, 'UTF8') AS events
    FROM moved
    LEFT JOIN job_types ON job_types.id = moved.type
    LEFT JOIN pools ON pools.number = moved.pool
    GROUP BY moved.tenant
), headed AS (
    INSERT INTO event_heads AS head (shard, tenant, last)
    SELECT :shard, packed.tenant, packed.events_count FROM packed
    ON CONFLICT (shard, tenant) DO UPDATE SET last = head.last + excluded.last
    RETURNING head.tenant, head.last
)
INSERT INTO event_log (events, shard, tenant, first_position, last_position)
SELECT packed.events, :shard, packed.tenant, headed.last - packed.events_count + 1, headed.last
FROM packed JOIN headed ON headed.tenant = packed.tenant
RETURNING tenant, first_position, last_position
