-- name: list_dead
-- A page of a tenant's dead letters, newest job first. A filter that is NULL does not narrow.
SELECT id::text AS id, tenant, pool, type, priority, lane, state, epoch, attempts, deliveries, timeout_ms,
       execute_at, started_at, finished_at, ran_us,
       CASE WHEN octet_length(payload) <= 1024 THEN payload ELSE '{}' END AS payload,  -- to see where a large one is
       result, error, failures, fingerprint, not_after, on_late, billed_us, unbilled_us, parent::text AS parent
FROM jobs
WHERE shard = :shard AND tenant = :tenant AND state = 4 AND fingerprint IS NOT NULL
  AND id < :before AND id >= :since
  AND (:type::int IS NULL OR type = :type::int)
  AND (:pool::smallint IS NULL OR pool = :pool::smallint)
  AND (:fingerprint::bigint IS NULL OR fingerprint = :fingerprint::bigint)
  AND (:tag::text IS NULL OR tags @> ARRAY[:tag::text])
ORDER BY jobs.id DESC LIMIT :limit

-- name: count_dead
-- How many match, looking at no more than so many: bounded, whatever there is.
SELECT count(*) AS matched FROM (
    SELECT FROM jobs
    WHERE shard = :shard AND tenant = :tenant AND state = 4 AND fingerprint IS NOT NULL
      AND id < :before AND id >= :since
      AND (:type::int IS NULL OR type = :type::int)
      AND (:pool::smallint IS NULL OR pool = :pool::smallint)
      AND (:fingerprint::bigint IS NULL OR fingerprint = :fingerprint::bigint)
      AND (:tag::text IS NULL OR tags @> ARRAY[:tag::text])
    LIMIT :limit
) AS found

-- name: dead_causes
-- The causes that a tenant's dead letters died of: a walk from one to the next along the index.
WITH RECURSIVE cause AS (
    (SELECT fingerprint FROM jobs
     WHERE shard = :shard AND tenant = :tenant AND state = 4 AND fingerprint IS NOT NULL
     ORDER BY fingerprint LIMIT 1)
    UNION ALL
    SELECT next.fingerprint FROM cause CROSS JOIN LATERAL (
        SELECT fingerprint FROM jobs
        WHERE shard = :shard AND tenant = :tenant AND state = 4 AND fingerprint > cause.fingerprint
        ORDER BY fingerprint LIMIT 1
    ) AS next
)
SELECT cause.fingerprint, found.matched, last.id::text AS id, last.type, last.error,
       last.finished_at
FROM (SELECT fingerprint FROM cause LIMIT :limit) AS cause
CROSS JOIN LATERAL (
    SELECT count(*) AS matched FROM (
        SELECT FROM jobs
        WHERE shard = :shard AND tenant = :tenant AND state = 4
          AND fingerprint = cause.fingerprint
        LIMIT :count_max
    ) AS counted
) AS found
CROSS JOIN LATERAL (
    SELECT id, type, error, finished_at FROM jobs
    WHERE shard = :shard AND tenant = :tenant AND state = 4 AND fingerprint = cause.fingerprint
    ORDER BY jobs.id DESC LIMIT 1
) AS last

-- name: dead_types
-- How many dead letters of each job type, looking at no more than so many of each.
WITH RECURSIVE kind AS (
    (SELECT type FROM jobs
     WHERE shard = :shard AND tenant = :tenant AND state = 4 AND fingerprint IS NOT NULL
     ORDER BY type LIMIT 1)
    UNION ALL
    SELECT next.type FROM kind CROSS JOIN LATERAL (
        SELECT type FROM jobs
        WHERE shard = :shard AND tenant = :tenant AND state = 4 AND fingerprint IS NOT NULL
          AND type > kind.type
        ORDER BY type LIMIT 1
    ) AS next
)
SELECT kind.type, found.matched
FROM (SELECT type FROM kind LIMIT :limit) AS kind
CROSS JOIN LATERAL (
    SELECT count(*) AS matched FROM (
        SELECT FROM jobs
        WHERE shard = :shard AND tenant = :tenant AND state = 4 AND fingerprint IS NOT NULL
          AND type = kind.type
        LIMIT :count_max
    ) AS counted
) AS found

-- name: next_dead
-- The next dead letters of an action after its cursor, oldest job first. A job that died after the
-- action began is not part of it, or a job that fails again would be replayed for ever.
SELECT id::text AS id FROM jobs
WHERE shard = :shard AND tenant = :tenant AND state = 4 AND fingerprint IS NOT NULL
  AND id > :cursor AND id < :before AND id >= :since
  AND (:type::int IS NULL OR type = :type::int)
  AND (:pool::smallint IS NULL OR pool = :pool::smallint)
  AND (:fingerprint::bigint IS NULL OR fingerprint = :fingerprint::bigint)
  AND (:tag::text IS NULL OR tags @> ARRAY[:tag::text])
  AND finished_at <= :began
ORDER BY jobs.id LIMIT :limit

-- name: replay
-- Back to the backlog with fresh counters and no last moment to start: whoever replays a job wants
-- it to run. It is due from now on: what it waited for while it was dead is nobody's waiting time,
-- and must neither raise alarms nor put it before what came since. Its id, its history and its last
-- error stay. (`state + 0`, so that the rows are looked up by
-- key: `= 4` would allow a walk over all that the tenant has dead. Likewise below.)
UPDATE jobs SET state = 1, attempts = 0, deliveries = 0, failures = NULL, fingerprint = NULL,
                execute_at = now(), not_after = NULL, on_late = NULL, started_at = NULL,
                finished_at = NULL, ran_us = NULL, result = NULL, payload = coalesce(:payload::bytea, jobs.payload),
                history = coalesce(jobs.history[greatest(cardinality(jobs.history) - 48, 1):], '{}')
                          || :entry::bytea
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[])
  AND state + 0 = 4 AND fingerprint IS NOT NULL
  AND (:in_flow::bool OR jobs.flows IS NULL)
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
RETURNING id::text AS id, tenant, pool, type, priority, lane, epoch, attempts, deliveries, timeout_ms,
          payload, failures, job_timing(execute_at, not_after, on_late) AS timing, NULL::text AS place, limits, trace

-- name: discard
-- Off the list of dead letters; the job stays dead, and visible, until its retention ends.
UPDATE jobs SET fingerprint = NULL
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[])
  AND state + 0 = 4 AND fingerprint IS NOT NULL
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
