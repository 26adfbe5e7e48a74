-- name: begin_billing
-- Each shard has a book of its own, as it lies with its log.
INSERT INTO billing_shards (shard, closed_until, stated_until)
SELECT shard, date_trunc('month', now(), 'UTC'), date_trunc('month', now(), 'UTC')
FROM unnest(:shards::int[]) AS shard
ON CONFLICT DO NOTHING

-- name: roll_up
-- The books are with the coordinator, the log with the shards. That a row of the books is written, as it was, makes
-- Citus commit in two phases: it knows that table, and not the one of the hours (`schema/distribution.py`).
WITH turn AS MATERIALIZED (
    SELECT shard, closed_until FROM billing_shards WHERE shard = ANY(:shards::int[]) ORDER BY shard FOR UPDATE SKIP LOCKED
), in_two_phases AS (
    UPDATE billing_shards SET closed_until = closed_until
    WHERE shard = ANY(:shards::int[]) AND shard IN (SELECT turn.shard FROM turn)
    RETURNING shard
), taken AS (
    DELETE FROM usage_log AS log USING (
        SELECT next.shard, next.id FROM turn
        CROSS JOIN LATERAL (
            SELECT page.shard, page.id FROM (
                SELECT shard, id, sum(cardinality(tenant_ids)) OVER (ORDER BY id) - cardinality(tenant_ids) AS lines_before
                FROM usage_log
                WHERE shard = ANY(:shards::int[]) AND shard = turn.shard AND refused IS NULL
                  AND (:ids::bigint[] IS NULL OR id = ANY(:ids::bigint[]))
                ORDER BY id LIMIT :limit
            ) AS page
            WHERE page.lines_before < :limit
        ) AS next
    ) AS picked
    WHERE log.shard = ANY(:shards::int[]) AND log.shard = picked.shard AND log.id = picked.id AND log.refused IS NULL
    RETURNING log.shard, log.recorded_at, log.tenant_ids, log.pool_ids, log.type_ids, log.billed_us, log.unbilled_us,
              log.are_ends, log.are_attempts, log.ended_ats
), booked AS (
    INSERT INTO usage_hours AS mine (tenant, hour, pool, type, jobs_ended, attempts, billed_us, unbilled_us)
    SELECT line.tenant,
           greatest(date_trunc('hour', coalesce(line.ended_at, taken.recorded_at), 'UTC'), turn.closed_until) AS hour,
           line.pool, line.type,
           count(*) FILTER (WHERE coalesce(line.is_end, true)), count(*) FILTER (WHERE coalesce(line.is_attempt, true)),
           least(sum(line.billed_us), 9223372036854775807)::bigint,
           least(sum(coalesce(line.unbilled_us, 0)), 9223372036854775807)::bigint
    FROM taken JOIN turn ON turn.shard = taken.shard
    CROSS JOIN LATERAL unnest(taken.tenant_ids, taken.pool_ids, taken.type_ids, taken.billed_us, taken.unbilled_us,
                              taken.are_ends, taken.are_attempts, taken.ended_ats)
         AS line (tenant, pool, type, billed_us, unbilled_us, is_end, is_attempt, ended_at)
    GROUP BY 1, 2, 3, 4
    ORDER BY 1, 2, 3, 4
    ON CONFLICT (tenant, hour, pool, type) DO UPDATE
    SET jobs_ended = mine.jobs_ended + excluded.jobs_ended, attempts = mine.attempts + excluded.attempts,
        billed_us = least(mine.billed_us::numeric + excluded.billed_us, 9223372036854775807)::bigint,
        unbilled_us = least(mine.unbilled_us::numeric + excluded.unbilled_us, 9223372036854775807)::bigint
)
SELECT coalesce(max(each.lines), 0) AS lines
FROM (SELECT sum(cardinality(taken.tenant_ids)) AS lines FROM taken GROUP BY taken.shard) AS each

-- name: read_usage
WITH logged AS MATERIALIZED (
    SELECT log.shard, coalesce(line.ended_at, log.recorded_at) AS ended_at, line.pool, line.type,
           CASE WHEN coalesce(line.is_end, true) THEN 1 ELSE 0 END AS jobs_ended,
           CASE WHEN coalesce(line.is_attempt, true) THEN 1 ELSE 0 END AS attempts,
           line.billed_us, coalesce(line.unbilled_us, 0) AS unbilled_us
    FROM usage_log AS log
    CROSS JOIN LATERAL unnest(log.tenant_ids, log.pool_ids, log.type_ids, log.billed_us, log.unbilled_us,
                              log.are_ends, log.are_attempts, log.ended_ats)
         AS line (tenant, pool, type, billed_us, unbilled_us, is_end, is_attempt, ended_at)
    WHERE log.shard = :shard AND log.refused IS NULL AND :tenant = ANY(log.tenant_ids) AND line.tenant = :tenant
)
SELECT width_bucket(used.hour, :cuts::timestamptz[]) AS period,
       CASE WHEN :by_pool::bool THEN used.pool ELSE 0 END::smallint AS pool, CASE WHEN :by_type::bool THEN used.type ELSE 0 END AS type,
       sum(used.jobs_ended)::bigint AS jobs_ended, sum(used.attempts)::bigint AS attempts,
       least(sum(used.billed_us), 9223372036854775807)::bigint AS billed_us,
       least(sum(used.unbilled_us), 9223372036854775807)::bigint AS unbilled_us
FROM (
    SELECT hour, pool, type, jobs_ended, attempts, billed_us, unbilled_us FROM usage_hours
    WHERE tenant = :tenant AND hour >= :since AND hour < :before
    UNION ALL
    SELECT greatest(date_trunc('hour', logged.ended_at, 'UTC'), books.closed_until),
           logged.pool, logged.type, logged.jobs_ended, logged.attempts, logged.billed_us, logged.unbilled_us
    FROM logged LEFT JOIN billing_shards AS books ON books.shard = logged.shard
) AS used
WHERE used.hour >= :since AND used.hour < :before
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT :limit
