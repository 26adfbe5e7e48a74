-- name: move_events
-- By keys, and in the order of their moments: ids that triggers give come from the nodes, those of statements from the
-- coordinator. Names of types and pools are joined to them there.
WITH moved AS (
    DELETE FROM event_inbox AS inbox
    USING (
        SELECT oldest.tenant, oldest.id
        FROM (
            SELECT asked.tenant FROM unnest(:tenants::int[]) AS asked (tenant)
            WHERE EXISTS (SELECT 1 FROM event_heads WHERE shard = :shard AND tenant = asked.tenant)
            OFFSET 0
        ) AS turn
        CROSS JOIN LATERAL (
            SELECT tenant, id FROM event_inbox
            WHERE shard = :shard AND tenant = turn.tenant ORDER BY at, id LIMIT :each
        ) AS oldest
    ) AS picked
    WHERE inbox.shard = :shard AND inbox.tenant = picked.tenant AND inbox.id = picked.id
      AND EXISTS (SELECT 1 FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
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
               '}]'), ',' ORDER BY moved.at, moved.id) || ']', 'UTF8') AS events
    FROM moved
    LEFT JOIN job_types ON job_types.id = moved.type
    LEFT JOIN pools ON pools.number = moved.pool
    GROUP BY moved.tenant
), headed AS (
    UPDATE event_heads AS head SET last = head.last + packed.events_count
    FROM packed
    WHERE head.shard = :shard AND head.tenant = packed.tenant
    RETURNING head.tenant, head.last, packed.events_count, packed.events
)
INSERT INTO event_log (events, shard, tenant, first_position, last_position)
SELECT headed.events, :shard, headed.tenant, headed.last - headed.events_count + 1, headed.last FROM headed
RETURNING tenant, first_position, last_position
