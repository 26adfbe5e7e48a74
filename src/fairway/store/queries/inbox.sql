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

-- name: begin_logs
-- Logs of tenants that have none; how many those were.
WITH begun AS (
    INSERT INTO event_heads (shard, tenant, last)
    SELECT :shard, turn.tenant, 0 FROM unnest(:tenants::int[]) AS turn (tenant)
    WHERE EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
    ON CONFLICT (shard, tenant) DO NOTHING
    RETURNING tenant
)
SELECT count(*) AS count FROM begun

-- name: move_events
-- The oldest events of these tenants, so many of each, out of the inbox and to the ends of their logs: a chunk for each.
-- All of it or nothing, and only for the owner of the shard. Two that move at once take turns: the rows that the first
-- takes are the first that the second waits for, and what is gone by then is not moved again. Rows are never written anew,
-- so their places hold for as long as the statement does. Of a tenant whose log was not begun nothing is taken.
-- The text is joined by hand, at two thirds of what the functions for JSON cost: only names and sentences need escapes.
WITH moved AS (
    DELETE FROM event_inbox AS inbox
    WHERE inbox.ctid = ANY (ARRAY(
        SELECT oldest.place
        FROM (
            SELECT asked.tenant FROM unnest(:tenants::int[]) AS asked (tenant)
            WHERE EXISTS (SELECT FROM event_heads WHERE shard = :shard AND tenant = asked.tenant)
            OFFSET 0
        ) AS turn
        CROSS JOIN LATERAL (
            SELECT ctid AS place FROM event_inbox
            WHERE shard = :shard AND tenant = turn.tenant ORDER BY id LIMIT :each
        ) AS oldest
    )) AND inbox.tenant = ANY(:tenants::int[])
      AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
    RETURNING inbox.tenant, inbox.id, inbox.at, inbox.kind, inbox.job, inbox.type, inbox.subject, inbox.detail,
              inbox.state, inbox.attempt, inbox.pool, inbox.ran_us, inbox.due_at, inbox.facts
), packed AS (
    SELECT moved.tenant, count(*) AS events_count, convert_to('[' || string_agg(concat(
               '[', floor(extract(epoch FROM moved.at) * 1000000)::bigint, ',"', moved.kind, '",',
               coalesce('"' || moved.job || '"', 'null'), ',', to_json(coalesce(moved.subject, job_types.name, '')), ',{',
               concat_ws(',',
                   '"state":"' || (ARRAY['scheduled', 'queued', 'running', 'succeeded', 'dead', 'cancelled', 'expired'])
                                  [moved.state + 1] || '"',
                   '"attempt":' || moved.attempt, '"pool":' || to_json(pools.name)::text,
                   '"ran_ms":' || moved.ran_us / 1000.0::float8,
                   '"due_at":"' || to_char(moved.due_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"',
                   '"detail":' || to_json(moved.detail)::text, '"amount":' || to_json(moved.facts ->> 'amount')::text,
                   '"cap":' || to_json(moved.facts ->> 'cap')::text, '"currency":' || to_json(moved.facts ->> 'currency')::text),
               '}]'), ',' ORDER BY moved.id) || ']', 'UTF8') AS events
    FROM moved
    LEFT JOIN job_types ON job_types.id = moved.type
    LEFT JOIN pools ON pools.number = moved.pool
    GROUP BY moved.tenant
), headed AS (
    UPDATE event_heads AS head SET last = head.last + packed.events_count
    FROM packed
    WHERE (head.shard, head.tenant) BETWEEN (:shard, packed.tenant) AND (:shard, packed.tenant)
    RETURNING head.tenant, head.last, packed.events_count, packed.events
)
INSERT INTO event_log (events, shard, tenant, first_position, last_position)
SELECT headed.events, :shard, headed.tenant, headed.last - headed.events_count + 1, headed.last FROM headed
RETURNING tenant, first_position, last_position
