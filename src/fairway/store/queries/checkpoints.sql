-- name: save_checkpoint
-- The lease in force decides, and holds the job's row: a run that lost it can refer to nothing.
INSERT INTO checkpoints (shard, tenant, job, epoch, number, object, size_bytes, sha256)
SELECT :shard, held.tenant, held.id, held.epoch, :number, :object, :size_bytes, :digest
FROM (
    SELECT tenant, id, epoch FROM jobs
    WHERE shard = :shard AND tenant = :tenant AND id = :job AND state + 0 = 2
      AND epoch = :epoch AND token = :token
    FOR SHARE
) AS held
ON CONFLICT (shard, tenant, job, epoch, number)
    DO UPDATE SET object = excluded.object, size_bytes = excluded.size_bytes, sha256 = excluded.sha256
RETURNING saved_at

-- name: is_lease_in_force
-- As save_checkpoint asks, before anything is read or kept; what it answers may be over by then.
SELECT 1 AS held FROM jobs
WHERE shard = :shard AND tenant = :tenant AND id = :job AND state + 0 = 2
  AND epoch = :epoch AND token = :token

-- name: is_checkpoint_saved
-- Whether the row of this checkpoint is there and refers to this object.
SELECT 1 AS saved FROM checkpoints
WHERE shard = :shard AND tenant = :tenant AND job = :job AND epoch = :epoch AND number = :number
  AND object = :object

-- name: newest_checkpoints
-- Those of runs before this epoch, the newest first.
SELECT epoch, number, object, size_bytes, sha256, saved_at FROM checkpoints
WHERE shard = :shard AND tenant = :tenant AND job = :job AND epoch < :before_epoch
ORDER BY epoch DESC, number DESC LIMIT :limit

-- name: newest_of_each
-- The newest checkpoint of each of these jobs, for whoever looks at them.
SELECT saved.tenant, saved.job::text AS job, saved.epoch, saved.number, saved.object, saved.size_bytes,
       saved.sha256, saved.saved_at
FROM unnest(:tenants::int[], :jobs::uuid[]) AS asked (tenant, job)
CROSS JOIN LATERAL (
    SELECT * FROM checkpoints WHERE shard = :shard AND tenant = asked.tenant AND job = asked.job
    ORDER BY epoch DESC, number DESC LIMIT 1
) AS saved

-- name: drop_older_checkpoints
-- All but the newest few of one job; answers the objects that nothing refers to now.
DELETE FROM checkpoints AS old
USING (
    SELECT epoch, number FROM checkpoints
    WHERE shard = :shard AND tenant = :tenant AND job = :job
    ORDER BY epoch DESC, number DESC OFFSET :keep
) AS past
WHERE old.shard = :shard AND old.tenant = :tenant AND old.job = :job
  AND old.epoch = past.epoch AND old.number = past.number
RETURNING old.object

-- name: jobs_with_checkpoints
-- Which of these jobs have one.
SELECT saved.job::text AS job
FROM unnest(:tenants::int[], :jobs::uuid[]) AS asked (tenant, job)
CROSS JOIN LATERAL (
    SELECT job FROM checkpoints WHERE shard = :shard AND tenant = asked.tenant AND job = asked.job LIMIT 1
) AS saved

-- name: drop_finished_checkpoints
-- Of jobs that ended well, were cancelled or are no more. A dead job keeps its own: it may be tried again.
DELETE FROM checkpoints AS old
USING (
    SELECT saved.tenant, saved.job, saved.epoch, saved.number FROM checkpoints AS saved
    LEFT JOIN LATERAL (
        SELECT state FROM jobs WHERE shard = :shard AND tenant = saved.tenant AND id = saved.job OFFSET 0
    ) AS job ON true
    WHERE saved.shard = :shard AND (job.state IS NULL OR job.state IN (3, 5, 6))
    LIMIT :limit
) AS past
WHERE (old.shard, old.tenant, old.job, old.epoch, old.number)
      BETWEEN (:shard, past.tenant, past.job, past.epoch, past.number)
      AND (:shard, past.tenant, past.job, past.epoch, past.number)
RETURNING old.object
