-- name: due_bunches
-- Where due jobs are: the seconds up to the present one, and in each the tenants; one probe a bunch
-- along the index of scheduled rows, from a bunch on. What is due later is not looked at.
WITH RECURSIVE bunch AS (
    (SELECT due_second(execute_at) AS second, tenant, execute_at FROM jobs
     WHERE shard = :shard AND state = 0
       AND (due_second(execute_at), tenant) > (:second::bigint, :tenant::int)
       AND due_second(execute_at) <= due_second(now())
     ORDER BY due_second(execute_at), tenant, execute_at LIMIT 1)
    UNION ALL
    SELECT next.second, next.tenant, next.execute_at
    FROM bunch
    CROSS JOIN LATERAL (
        SELECT due_second(execute_at) AS second, tenant, execute_at FROM jobs
        WHERE shard = :shard AND state = 0
          AND (due_second(execute_at), tenant) > (bunch.second, bunch.tenant)
          AND due_second(execute_at) <= due_second(now())
        ORDER BY due_second(execute_at), tenant, execute_at LIMIT 1
    ) AS next
)
SELECT second, tenant, floor(extract(epoch FROM now() - execute_at) * 1000)::bigint AS age_ms
FROM bunch LIMIT :limit

-- name: next_second
-- How long until the second of the next bunch begins, after this one. Not "after the present second": the look at the
-- bunches was another statement, and a second that began in between would be passed over until the one after it.
SELECT due_second(execute_at) - extract(epoch FROM now())::float8 AS seconds FROM jobs
WHERE shard = :shard AND state = 0 AND (due_second(execute_at), tenant) > (:second::bigint, :tenant::int)
ORDER BY due_second(execute_at), tenant, execute_at LIMIT 1

-- name: promote_due
-- Due jobs move to the backlog: of these bunches, the oldest first, so many of each tenant. A job that
-- was cancelled or moved to another time at the same moment stays as it is. (`state < 1` at the end, so
-- that the rows are looked up by key: `= 0` would allow a walk over all that is scheduled.)
UPDATE jobs SET state = 1
FROM (
    SELECT job.tenant, job.id
    FROM unnest(:tenants::int[], :limits::int[]) AS share (tenant, most)
    CROSS JOIN LATERAL (
        SELECT found.tenant, found.id
        FROM unnest(:bunch_seconds::bigint[], :bunch_tenants::int[]) AS bunch (second, tenant)
        CROSS JOIN LATERAL (
            SELECT tenant, id FROM jobs
            WHERE shard = :shard AND state = 0 AND due_second(execute_at) = bunch.second
              AND tenant = bunch.tenant AND execute_at <= now()
            ORDER BY execute_at, id LIMIT share.most
        ) AS found
        WHERE bunch.tenant = share.tenant
        LIMIT share.most
    ) AS job
) AS due
WHERE (jobs.shard, jobs.tenant, jobs.id) BETWEEN (:shard, due.tenant, due.id) AND (:shard, due.tenant, due.id)
  AND jobs.id = due.id
  AND jobs.state < 1 AND jobs.execute_at <= now()
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
RETURNING jobs.id::text AS id, jobs.tenant, jobs.pool, jobs.type, jobs.priority, jobs.lane,
          jobs.epoch, jobs.attempts, jobs.deliveries, jobs.timeout_ms, jobs.payload, jobs.failures,
          job_timing(jobs.execute_at, jobs.not_after, jobs.on_late) AS timing, NULL::text AS place, jobs.limits, jobs.trace

-- name: reschedule
-- Another time for a job that is still scheduled; the row lock decides against a racing promotion. One that waits
-- for others (flows.sql) has no time of its own.
UPDATE jobs SET execute_at = :execute_at
WHERE shard = :shard AND tenant = :tenant AND id = :id AND state < 1 AND execute_at < '9999-01-01 00:00+00'
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
RETURNING id

-- name: passed_last_moments
-- Waiting jobs that may not start any more.
SELECT id::text AS id, tenant, pool, type, priority, lane FROM jobs
WHERE shard = :shard AND state <= 1 AND on_late = 1 AND not_after < now()
ORDER BY not_after LIMIT :limit

-- name: expire
UPDATE jobs SET state = 6, finished_at = now(), error = :error::bytea
FROM unnest(:tenants::int[], :ids::uuid[]) AS late (tenant, id)
WHERE (jobs.shard, jobs.tenant, jobs.id) BETWEEN (:shard, late.tenant, late.id) AND (:shard, late.tenant, late.id)
  AND jobs.id = late.id
  AND jobs.state IN (0, 1) AND jobs.not_after < now()
  AND (:in_flow::bool OR jobs.flows IS NULL)
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
RETURNING jobs.id::text AS id
