-- name: read_jobs
-- Several jobs in full, for everybody who asked in the same moment.
SELECT job.id::text AS id, job.tenant, job.pool, job.type, job.priority, job.lane, job.state, job.epoch,
       job.attempts, job.deliveries, job.timeout_ms, job.execute_at, job.started_at, job.finished_at, job.ran_us,
       job.payload, job.result, job.error, job.failures, job.fingerprint, job.not_after, job.on_late,
       job.billed_us, job.unbilled_us, job.parent::text AS parent, job.children, job.children_ms,
       job.tags, job.metadata, job.history, job.limits, job.trace
FROM unnest(:tenants::int[], :ids::uuid[]) AS asked (tenant, id)
CROSS JOIN LATERAL (
    SELECT * FROM jobs WHERE shard = :shard AND tenant = asked.tenant AND id = asked.id OFFSET 0
) AS job

-- name: read_states
-- Where several jobs stand, for those who wait for them on a server that does not own them.
SELECT job.id::text AS id, job.state, job.epoch
FROM unnest(:tenants::int[], :ids::uuid[]) AS asked (tenant, id)
CROSS JOIN LATERAL (
    SELECT * FROM jobs WHERE shard = :shard AND tenant = asked.tenant AND id = asked.id OFFSET 0
) AS job

-- name: list_jobs
-- A page of a tenant's jobs, newest first. A filter that is NULL does not narrow. A page ends early, with the
-- job that makes it so heavy (`PAGE_BYTES`); of payloads it shows only where a large one is, which is short.
SELECT id::text AS id, tenant, pool, type, priority, lane, state, epoch, attempts, deliveries, timeout_ms,
       execute_at, started_at, finished_at, ran_us,
       CASE WHEN octet_length(payload) <= 1024 THEN payload ELSE '{}' END AS payload,
       result, error, failures, fingerprint, not_after, on_late, billed_us, unbilled_us, parent::text AS parent,
       children, children_ms, tags, metadata
FROM (
    SELECT found.*, sum(coalesce(octet_length(result), 0) + coalesce(octet_length(error), 0)) OVER (
        ORDER BY found.id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (
        SELECT * FROM jobs
        WHERE shard = :shard AND tenant = :tenant
          AND id < :before AND id >= :since
          AND (:states::smallint[] IS NULL OR state = ANY(:states::smallint[]))
          AND (:type::int IS NULL OR type = :type::int)
          AND (:pool::smallint IS NULL OR pool = :pool::smallint)
          AND (:tag::text IS NULL OR tags @> ARRAY[:tag::text])
        ORDER BY jobs.id DESC LIMIT :limit
    ) AS found
) AS page
WHERE coalesce(bytes_before, 0) < 4194304
ORDER BY page.id DESC  -- the column: `id` alone would be the text above, sorted in full

-- name: list_children
-- Jobs by their keys as `list_jobs` shows them, with the same end of a page that is heavy.
SELECT id::text AS id, tenant, pool, type, priority, lane, state, epoch, attempts, deliveries, timeout_ms,
       execute_at, started_at, finished_at, ran_us,
       CASE WHEN octet_length(payload) <= 1024 THEN payload ELSE '{}' END AS payload,
       result, error, failures, fingerprint, not_after, on_late, billed_us, unbilled_us, parent::text AS parent,
       children, children_ms, tags, metadata
FROM (
    SELECT job.*, sum(coalesce(octet_length(job.result), 0) + coalesce(octet_length(job.error), 0)) OVER (
        ORDER BY job.id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM unnest(:ids::uuid[]) AS asked (id)
    CROSS JOIN LATERAL (
        SELECT * FROM jobs WHERE shard = :shard AND tenant = :tenant AND id = asked.id OFFSET 0
    ) AS job
) AS page
WHERE coalesce(bytes_before, 0) < 4194304
ORDER BY page.id DESC

-- name: read_relatives
-- Where jobs of a family stand, and how many they started, by their keys.
SELECT job.id::text AS id, job.tenant, job.pool, job.type, job.priority, job.lane, job.state, job.epoch,
       job.children, job.children_ms
FROM unnest(:ids::uuid[]) AS asked (id)
CROSS JOIN LATERAL (
    SELECT * FROM jobs WHERE shard = :shard AND tenant = :tenant AND id = asked.id OFFSET 0
) AS job

-- name: types_of_jobs
-- The types of one part of a walk over a tenant's jobs, newest first: where it began, and where the next part does.
SELECT count(*) AS jobs, array_agg(DISTINCT type) AS types,
       (array_agg(id ORDER BY id DESC))[1]::text AS first, (array_agg(id ORDER BY id))[1]::text AS last
FROM (
    SELECT id, type FROM jobs WHERE shard = :shard AND tenant = :tenant AND id < :before AND id >= :since
    ORDER BY id DESC LIMIT :limit
) AS part

-- name: live_jobs
-- One part of a walk over a tenant's jobs, newest first: those that have not ended, with what it takes to find them in
-- memory. No index holds them alone, so a part looks at so many rows at most (`:looked_max`), however many have ended;
-- its last row, where it found fewer than it may, says up to where it has looked (`is_found` is false).
WITH found AS MATERIALIZED (
    SELECT id, pool, type, priority, lane FROM (
        SELECT id, pool, type, priority, lane, state, tags FROM jobs
        WHERE shard = :shard AND tenant = :tenant AND id < :before AND id >= :since
        ORDER BY jobs.id DESC LIMIT :looked_max
    ) AS part
    WHERE state = ANY(:states::smallint[])
      AND (:type::int IS NULL OR type = :type::int)
      AND (:pool::smallint IS NULL OR pool = :pool::smallint)
      AND (:tag::text IS NULL OR tags @> ARRAY[:tag::text])
    ORDER BY id DESC LIMIT :limit
)
SELECT id::text AS id, pool, type, priority, lane, true AS is_found FROM found
UNION ALL (
    SELECT id::text, 0, 0, 0, 0, false FROM jobs
    WHERE shard = :shard AND tenant = :tenant AND id < :before AND id >= :since
      AND (SELECT count(*) FROM found) < :limit
    ORDER BY jobs.id DESC OFFSET :looked_max - 1 LIMIT 1
)

-- name: count_live_jobs
-- How many such a walk would find among so many of the newest rows, counted in the store: a number to send, not a
-- hundred thousand rows; and whether there are more to look at.
SELECT (
    SELECT count(*) FROM (
        SELECT FROM (
            SELECT pool, type, state, tags FROM jobs
            WHERE shard = :shard AND tenant = :tenant AND id < :before AND id >= :since
            ORDER BY jobs.id DESC LIMIT :looked_max
        ) AS part
        WHERE state = ANY(:states::smallint[])
          AND (:type::int IS NULL OR type = :type::int)
          AND (:pool::smallint IS NULL OR pool = :pool::smallint)
          AND (:tag::text IS NULL OR tags @> ARRAY[:tag::text])
        LIMIT :limit
    ) AS found
) AS matched, EXISTS (
    SELECT FROM jobs WHERE shard = :shard AND tenant = :tenant AND id < :before AND id >= :since
    ORDER BY jobs.id DESC OFFSET :looked_max LIMIT 1
) AS is_longer
