-- name: streams_with_work
-- The streams that have a queued job, with its first: a walk from stream to stream along the index
-- of queued rows, one probe a stream, whatever the depth. It begins after a stream and may end early.
WITH RECURSIVE stream AS (
    (SELECT pool, tenant, lane, type, priority, id FROM jobs
     WHERE shard = :shard AND state = 1
       AND (pool, tenant, lane, type, priority)
           > (:pool::smallint, :tenant::int, :lane::smallint, :type::int, :priority::smallint)
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
SELECT tenant, pool, type, priority, lane, id::text AS first FROM stream LIMIT :limit

-- name: next_queued
-- The next queued rows after a stream, in the same order: one walk along the index. Where streams are
-- shallow this finds them at a twentieth of the cost of a probe each; a deep one fills a page alone.
SELECT tenant, pool, type, priority, lane, id::text AS first FROM jobs
WHERE shard = :shard AND state = 1
  AND (pool, tenant, lane, type, priority)
      > (:pool::smallint, :tenant::int, :lane::smallint, :type::int, :priority::smallint)
ORDER BY pool, tenant, lane, type, priority, id LIMIT :limit

-- name: read_streams
-- The next jobs of several streams at once, each after its own cursor. What a stream's jobs have in
-- common is not said again for each: `number` is that of the stream. The rest is in the order of
-- QueuedJob. A payload over the limit stays away: the reader stops before it and asks by bytes.
-- (From cursor to end in the order of the index of queued rows, so that no other will do: five
-- equalities and `ORDER BY id` could as well be a walk over all that the tenant ever had.)
SELECT stream.number, job.id::text AS id, job.epoch, job.attempts, job.deliveries, job.timeout_ms,
       CASE WHEN octet_length(job.payload) <= :light_bytes::int THEN job.payload END AS payload,
       job.failures, job_timing(job.execute_at, job.not_after, job.on_late) AS timing,
       job.ctid::text AS place, job.limits, job.trace
FROM unnest(:shards::int[], :pools::smallint[], :tenants::int[], :lanes::smallint[], :types::int[],
            :priorities::smallint[], :cursors::uuid[], :limits::int[]) WITH ORDINALITY
     AS stream (shard, pool, tenant, lane, type, priority, cursor, most, number)
CROSS JOIN LATERAL (
    SELECT ctid, * FROM jobs
    WHERE shard = stream.shard AND state = 1
      AND (pool, tenant, lane, type, priority, id)
          > (stream.pool, stream.tenant, stream.lane, stream.type, stream.priority, stream.cursor)
      AND (pool, tenant, lane, type, priority)
          <= (stream.pool, stream.tenant, stream.lane, stream.type, stream.priority)
    ORDER BY pool, tenant, lane, type, priority, id LIMIT stream.most
) AS job

-- name: read_streams_by_bytes
-- The same for streams with heavy jobs: each up to a sum of bytes, and its first job in any case. The
-- sum is known before a large payload is fetched. It costs a third more than `read_streams`.
SELECT stream.number, job.id::text AS id, job.epoch, job.attempts, job.deliveries, job.timeout_ms,
       job.payload, job.failures, job_timing(job.execute_at, job.not_after, job.on_late) AS timing,
       job.ctid::text AS place, job.limits, job.trace
FROM unnest(:shards::int[], :pools::smallint[], :tenants::int[], :lanes::smallint[], :types::int[],
            :priorities::smallint[], :cursors::uuid[], :limits::int[]) WITH ORDINALITY
     AS stream (shard, pool, tenant, lane, type, priority, cursor, most, number)
CROSS JOIN LATERAL (
    SELECT *, sum(octet_length(payload)) OVER (ROWS UNBOUNDED PRECEDING) - octet_length(payload) AS before
    FROM (
        SELECT ctid, * FROM jobs
        WHERE shard = stream.shard AND state = 1
          AND (pool, tenant, lane, type, priority, id)
              > (stream.pool, stream.tenant, stream.lane, stream.type, stream.priority, stream.cursor)
          AND (pool, tenant, lane, type, priority)
              <= (stream.pool, stream.tenant, stream.lane, stream.type, stream.priority)
        ORDER BY pool, tenant, lane, type, priority, id LIMIT stream.most
    ) AS near
) AS job
WHERE job.before < :budget_bytes::bigint

-- name: jobs_ahead
-- How many jobs of a stream come before this one; counts so far and no further.
SELECT count(*) AS ahead FROM (
    SELECT FROM jobs
    WHERE shard = :shard AND state = 1
      AND (pool, tenant, lane, type, priority)
          >= (:pool::smallint, :tenant::int, :lane::smallint, :type::int, :priority::smallint)
      AND (pool, tenant, lane, type, priority, id)
          < (:pool::smallint, :tenant::int, :lane::smallint, :type::int, :priority::smallint, :id::uuid)
    ORDER BY pool, tenant, lane, type, priority, id LIMIT :limit
) AS before

-- name: count_queued
-- Depth per tenant and pool of the next so many queued rows after one, in the order of their index; and which
-- was the last. Asked when an owner takes over, slice by slice: no queue is too long to be counted.
WITH slice AS MATERIALIZED (
    SELECT pool, tenant, lane, type, priority, id FROM jobs
    WHERE shard = :shard AND state = 1
      AND (pool, tenant, lane, type, priority, id)
          > (:pool::smallint, :tenant::int, :lane::smallint, :type::int, :priority::smallint, :id::uuid)
    ORDER BY pool, tenant, lane, type, priority, id LIMIT :limit
)
SELECT counted.tenant, counted.pool, counted.depth,
       last.pool AS last_pool, last.tenant AS last_tenant, last.lane, last.type, last.priority, last.id::text AS id
FROM (SELECT pool, tenant, count(*) AS depth FROM slice GROUP BY pool, tenant) AS counted
CROSS JOIN (
    SELECT * FROM slice
    ORDER BY pool DESC, tenant DESC, lane DESC, type DESC, priority DESC, id DESC LIMIT 1
) AS last

-- name: pull_heads
-- Degraded mode: streams with work of one pool, after a tenant, and of each tenant so many at most: a walk
-- like that of `streams_with_work` that leaves a tenant with very many streams for the next one. It may show
-- one stream of the pool after it: there it ends.
WITH RECURSIVE stream AS (
    (SELECT pool, tenant, lane, type, priority, 1 AS number FROM jobs
     WHERE shard = :shard AND state = 1
       AND (pool, tenant, lane, type, priority)
           > (:pool::smallint, :tenant::int, 32767::smallint, 2147483647, 32767::smallint)
     ORDER BY pool, tenant, lane, type, priority, id LIMIT 1)
    UNION ALL
    SELECT next.pool, next.tenant, next.lane, next.type, next.priority,
           CASE WHEN next.tenant = stream.tenant THEN stream.number + 1 ELSE 1 END
    FROM stream
    CROSS JOIN LATERAL (
        SELECT pool, tenant, lane, type, priority FROM jobs
        WHERE shard = :shard AND state = 1
          AND (pool, tenant, lane, type, priority)
              > (stream.pool, stream.tenant,
                 CASE WHEN stream.number < :per_tenant::int THEN stream.lane ELSE 32767::smallint END,
                 CASE WHEN stream.number < :per_tenant::int THEN stream.type ELSE 2147483647 END,
                 CASE WHEN stream.number < :per_tenant::int THEN stream.priority ELSE 32767::smallint END)
        ORDER BY pool, tenant, lane, type, priority, id LIMIT 1
    ) AS next
    WHERE stream.pool = :pool::smallint
)
SELECT tenant, pool, type, priority, lane FROM stream LIMIT :limit

-- name: pull_jobs
-- Degraded mode: the first jobs of several streams, held until they are leased or let go with the
-- transaction. What somebody else holds is passed by.
SELECT job.id::text AS id, job.tenant, job.pool, job.type, job.priority, job.lane, job.epoch, job.attempts,
       job.deliveries, job.timeout_ms, job.payload, job.failures,
       job_timing(job.execute_at, job.not_after, job.on_late) AS timing, NULL::text AS place, job.limits, job.trace
FROM unnest(:pools::smallint[], :tenants::int[], :lanes::smallint[], :types::int[], :priorities::smallint[],
            :limits::int[]) AS stream (pool, tenant, lane, type, priority, most)
CROSS JOIN LATERAL (
    SELECT * FROM jobs
    WHERE shard = :shard AND state = 1
      AND (pool, tenant, lane, type, priority)
          >= (stream.pool, stream.tenant, stream.lane, stream.type, stream.priority)
      AND (pool, tenant, lane, type, priority)
          <= (stream.pool, stream.tenant, stream.lane, stream.type, stream.priority)
    ORDER BY pool, tenant, lane, type, priority, id LIMIT stream.most
    FOR UPDATE SKIP LOCKED
) AS job
