-- name: waiting_tenants
-- Which tenants have jobs to be moved: from one to the next, however many each has.
WITH RECURSIVE found AS (
    (SELECT tenant FROM outbox
     WHERE shard = :shard AND tenant > :after AND refused_at IS NULL ORDER BY tenant LIMIT 1)
    UNION ALL
    SELECT (SELECT outbox.tenant FROM outbox
            WHERE outbox.shard = :shard AND outbox.tenant > found.tenant AND outbox.refused_at IS NULL
            ORDER BY outbox.tenant LIMIT 1)
    FROM found WHERE found.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL LIMIT :limit

-- name: read_waiting
-- The oldest jobs of a tenant that wait: so many, and no more once they have so many bytes.
SELECT id::text, request FROM (
    SELECT id, request,
           sum(octet_length(request)) OVER (ORDER BY id) - octet_length(request) AS bytes_before
    FROM (
        SELECT id, request FROM outbox
        WHERE shard = :shard AND tenant = :tenant AND refused_at IS NULL ORDER BY id LIMIT :limit
    ) AS oldest
) AS weighed WHERE bytes_before < :bytes_max ORDER BY id

-- name: take_waiting
-- Take jobs out, for whoever writes them to `jobs` in the same transaction and owns the shard until it ends.
DELETE FROM outbox
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::text::uuid[]) AND refused_at IS NULL
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
RETURNING id::text

-- name: set_aside
-- What is refused waits no more; its reason stands with it.
UPDATE outbox SET refused_at = now(), reason = refused.reason
FROM unnest(:ids::uuid[], :reasons::text[]) AS refused (id, reason)
WHERE outbox.shard = :shard AND outbox.tenant = :tenant AND outbox.id = refused.id
  AND outbox.refused_at IS NULL

-- name: forget_refused
-- Of what was set aside a tenant keeps the newest.
DELETE FROM outbox
WHERE shard = :shard AND tenant = :tenant AND refused_at IS NOT NULL AND id <= (
    SELECT id FROM outbox
    WHERE shard = :shard AND tenant = :tenant AND refused_at IS NOT NULL
    ORDER BY id DESC OFFSET :keep LIMIT 1
)

-- name: measure_waiting
-- How much of a tenant's waits, counted up to a bound.
SELECT count(*) AS jobs, coalesce(sum(octet_length(request)), 0)::bigint AS bytes FROM (
    SELECT request FROM outbox
    WHERE shard = :shard AND tenant = :tenant AND refused_at IS NULL ORDER BY id LIMIT :limit
) AS counted
