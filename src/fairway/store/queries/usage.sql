-- name: begin_billing
-- The books of a shard begin with the month in which it is first looked at; or with an earlier one, which the shard
-- with its book has not closed yet: what ended in it is still booked there, and must be stated. That one's begin with it,
-- whoever owns it: opened later, when the month has turned, it would bill in the new one what ended in the old.
INSERT INTO billing_shards (shard, closed_until, stated_until)
SELECT new.shard, month.begins, month.begins
FROM (SELECT shard FROM unnest(:shards::int[]) AS given (shard)
      UNION SELECT book_of(shard) FROM unnest(:shards::int[]) AS given (shard)) AS new
CROSS JOIN LATERAL (
    SELECT least(date_trunc('month', now(), 'UTC'),
                 (SELECT book.closed_until FROM billing_shards AS book WHERE book.shard = book_of(new.shard))) AS begins
) AS month
ORDER BY new.shard  -- servers open books at the same time
ON CONFLICT DO NOTHING

-- name: roll_up
-- Takes some rows of the log and books their lines by the hour: one statement, so a row is in the log or in the
-- hours, and never in both or in neither, wherever it is cut short. Whoever holds the books' row does so alone;
-- another goes away with nothing of that shard. What comes too late for a month that is closed is booked into the first hour after it.
-- The next ones of each shard until they have so many lines, or with `ids` those; a row that was set aside is not among them.
WITH turn AS MATERIALIZED (
    SELECT shard, closed_until FROM billing_shards WHERE shard = ANY(:shards::int[]) ORDER BY shard FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM usage_log
    WHERE refused IS NULL AND ctid = ANY(ARRAY(
        SELECT next.place FROM turn
        CROSS JOIN LATERAL (
            SELECT page.place FROM (
                SELECT ctid AS place, sum(cardinality(tenant_ids)) OVER (ORDER BY id) - cardinality(tenant_ids) AS lines_before
                FROM usage_log
                WHERE shard = turn.shard AND refused IS NULL AND (:ids::bigint[] IS NULL OR id = ANY(:ids::bigint[]))
                ORDER BY id LIMIT :limit
            ) AS page
            WHERE page.lines_before < :limit
        ) AS next))
    RETURNING *
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

-- name: next_to_book
SELECT id FROM usage_log WHERE shard = :shard AND refused IS NULL ORDER BY id LIMIT :limit

-- name: set_aside
-- Rows that cannot be booked stay in the log with the reason, out of the way of the others. Not more than so many in a
-- shard: then it is not the rows that are at fault.
UPDATE usage_log AS log SET refused = said.reason
FROM unnest(:ids::bigint[], :reasons::text[]) AS said (id, reason)
WHERE log.shard = :shard AND log.id = said.id
  AND (SELECT count(*) FROM usage_log AS aside WHERE aside.shard = :shard AND aside.refused IS NOT NULL)
      + cardinality(:ids::bigint[]) <= :most

-- name: try_again
-- What was set aside may be booked by now: it was mended, or what stood in its way was.
UPDATE usage_log SET refused = NULL WHERE shard = ANY(:shards::int[]) AND refused IS NOT NULL

-- name: read_usage
-- What a tenant used, by period, pool and type: what is rolled up and what is still in the log, as of one moment. `cuts`
-- are the beginnings of the periods. A sum over all pools has pool 0; likewise types.
SELECT width_bucket(used.hour, :cuts::timestamptz[]) AS period,
       CASE WHEN :by_pool::bool THEN used.pool ELSE 0 END::smallint AS pool, CASE WHEN :by_type::bool THEN used.type ELSE 0 END AS type,
       sum(used.jobs_ended)::bigint AS jobs_ended, sum(used.attempts)::bigint AS attempts,
       least(sum(used.billed_us), 9223372036854775807)::bigint AS billed_us,
       least(sum(used.unbilled_us), 9223372036854775807)::bigint AS unbilled_us
FROM (
    SELECT hour, pool, type, jobs_ended, attempts, billed_us, unbilled_us FROM usage_hours
    WHERE tenant = :tenant AND hour >= :since AND hour < :before
    UNION ALL
    SELECT greatest(date_trunc('hour', coalesce(line.ended_at, log.recorded_at), 'UTC'), books.closed_until),
           line.pool, line.type, CASE WHEN coalesce(line.is_end, true) THEN 1 ELSE 0 END,
           CASE WHEN coalesce(line.is_attempt, true) THEN 1 ELSE 0 END, line.billed_us, coalesce(line.unbilled_us, 0)
    FROM usage_log AS log LEFT JOIN billing_shards AS books ON books.shard = log.shard
    CROSS JOIN LATERAL unnest(log.tenant_ids, log.pool_ids, log.type_ids, log.billed_us, log.unbilled_us,
                              log.are_ends, log.are_attempts, log.ended_ats)
         AS line (tenant, pool, type, billed_us, unbilled_us, is_end, is_attempt, ended_at)
    WHERE log.shard IN (:shard, book_of(:shard)) AND log.refused IS NULL
      AND :tenant = ANY(log.tenant_ids)  -- most rows of a book have none of it: they are not taken apart
      AND line.tenant = :tenant
) AS used
WHERE used.hour >= :since AND used.hour < :before
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT :limit

-- name: forget_usage
-- Hours past their time, of months that are closed and stated everywhere.
DELETE FROM usage_hours WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM usage_hours
    WHERE hour < :before AND hour < (SELECT min(stated_until) FROM billing_shards)
    ORDER BY hour LIMIT :limit
))

-- name: jobs_of_attempts
-- The next jobs of a tenant, newest first, with what their runs left: so many, or as many as are not too heavy.
SELECT id::text AS id, pool, type, state, finished_at, ran_us, history
FROM (
    SELECT found.*, sum(coalesce(pg_column_size(found.history), 0)) OVER (
        ORDER BY found.id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (
        SELECT id, pool, type, state, finished_at, ran_us, history FROM jobs
        WHERE shard = :shard AND tenant = :tenant AND id < :before AND id >= :since
        ORDER BY jobs.id DESC LIMIT :limit
    ) AS found
) AS page
WHERE coalesce(bytes_before, 0) < 1048576
ORDER BY page.id DESC
