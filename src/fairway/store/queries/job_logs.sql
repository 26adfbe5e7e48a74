-- name: keep_lines
-- Chunks of lines of many runs. A chunk that is sent again is there twice, but not in one statement: it would be refused
-- with everybody's. Who reads passes over what it has.
INSERT INTO job_logs (shard, tenant, job, epoch, attempt, first_n, last_n, lines)
SELECT :shard, * FROM unnest(
    :tenants::int[], :jobs::uuid[], :epochs::bigint[], :attempts::smallint[],
    :first_ns::smallint[], :last_ns::smallint[], :lines::bytea[]
)
ON CONFLICT DO NOTHING

-- name: list_lines
-- A job's chunks that have lines after a place, in order. An attempt that is NULL does not narrow.
SELECT epoch, attempt, lines FROM job_logs
WHERE shard = :shard AND tenant = :tenant AND job = :job AND epoch >= :epoch
    AND (epoch > :epoch OR last_n > :after_n)
    AND (:attempt::int IS NULL OR attempt = :attempt::int)
ORDER BY epoch, first_n LIMIT :limit
