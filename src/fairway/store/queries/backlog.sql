-- name: streams_with_work
-- Every stream that has a queued job, with its first: a walk from stream to stream along the index
-- of queued rows, one probe a stream, whatever the depth.
WITH RECURSIVE stream AS (
    (SELECT pool, tenant, lane, type, priority, id FROM jobs
     WHERE shard = :shard AND state = 1
     ORDER BY pool, tenant, lane, type, priority, id LIMIT 1)
    UNION ALL
    SELECT next.pool, next.tenant, next.lane, next.type, next.priority, next.id
    FROM stream
    CROSS JOIN LATERAL (
        SELECT pool, tenant, lane, type, priority, id FROM jobs
        WHERE shard = :shard AND state = 1
          AND (pool, tenant, lane, type, priority) > (stream.pool, stream.tenant, stream.lane, stream.type, stream.priority)
        ORDER BY pool, tenant, lane, type, priority, id LIMIT 1
    ) AS next
)
SELECT pool, tenant, lane, type, priority, id::text AS first FROM stream

-- name: read_streams
-- The next jobs of several streams at once, each after its own cursor.
SELECT job.id::text AS id, job.tenant, job.pool, job.type, job.priority, job.lane, job.epoch, job.attempts,
       job.deliveries, job.timeout_ms, job.payload, job.failures
FROM unnest(:pools::smallint[], :tenants::int[], :lanes::smallint[], :types::int[],
            :priorities::smallint[], :cursors::uuid[], :limits::int[])
     AS stream (pool, tenant, lane, type, priority, cursor, most)
CROSS JOIN LATERAL (
    SELECT * FROM jobs
    WHERE jobs.shard = :shard AND jobs.state = 1 AND jobs.pool = stream.pool
      AND jobs.tenant = stream.tenant AND jobs.lane = stream.lane AND jobs.type = stream.type
      AND jobs.priority = stream.priority AND jobs.id > stream.cursor
    ORDER BY jobs.id LIMIT stream.most
) AS job

-- name: jobs_ahead
-- How many jobs of a stream come before this one; counts so far and no further.
SELECT count(*) AS ahead FROM (
    SELECT FROM jobs
    WHERE shard = :shard AND state = 1 AND pool = :pool AND tenant = :tenant AND lane = :lane
      AND type = :type AND priority = :priority AND id < :id
    LIMIT :limit
) AS before

-- name: count_queued
-- Depth per tenant and pool; asked once when an owner takes over, never on a live path.
SELECT pool, tenant, count(*) AS depth FROM jobs
WHERE shard = :shard AND state = 1 GROUP BY pool, tenant

-- name: promote_due
-- Due jobs move to the backlog, oldest first, so many a round. The database's clock decides.
UPDATE jobs SET state = 1, execute_at = NULL
FROM (
    SELECT tenant, id FROM jobs
    WHERE shard = :shard AND state = 0 AND execute_at <= now()
    ORDER BY execute_at, id LIMIT :limit
) AS due
WHERE jobs.shard = :shard + 0 * due.tenant AND jobs.tenant = due.tenant AND jobs.id = due.id AND jobs.state = 0
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR SHARE)
RETURNING jobs.id::text AS id, jobs.tenant, jobs.pool, jobs.type, jobs.priority, jobs.lane, jobs.epoch,
          jobs.attempts, jobs.deliveries, jobs.timeout_ms, jobs.payload, jobs.failures

-- name: next_due
-- How long until the next scheduled job is due, by the database's clock.
SELECT extract(epoch FROM execute_at - now())::float8 AS seconds FROM jobs
WHERE shard = :shard AND state = 0 ORDER BY execute_at LIMIT 1
