-- name: begin_action
INSERT INTO dead_letter_actions (shard, tenant, id, kind, type, pool, fingerprint, since, before,
                                 payload, per_second, matched, cursor)
VALUES (:shard, :tenant, :id, :kind, :type, :pool, :fingerprint, :since, :before, :payload,
        :per_second, :matched, '00000000-0000-0000-0000-000000000000')

-- name: move_action
-- So far it has come. In one transaction with what it did; one that was aborted moves no more.
UPDATE dead_letter_actions
SET done = done + :moved, cursor = :cursor,
    state = CASE WHEN :is_over THEN 'done' ELSE state END,
    finished_at = CASE WHEN :is_over THEN now() END
WHERE shard = :shard AND tenant = :tenant AND id = :id AND state = 'running'
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)

-- name: lock_action
-- Who moves an action holds it, so that an abort is before a batch or after it, never within.
SELECT id::text AS id, tenant, kind, state, type, pool, fingerprint, since::text AS since,
       before::text AS before, payload, per_second, matched, done, cursor::text AS cursor,
       created_at, finished_at, error
FROM dead_letter_actions
WHERE shard = :shard AND tenant = :tenant AND id = :id AND state = 'running' FOR UPDATE

-- name: abort_action
UPDATE dead_letter_actions SET state = 'aborted', finished_at = now()
WHERE shard = :shard AND tenant = :tenant AND id = :id AND state = 'running'

-- name: fail_action
-- The store refused a batch of it again and again; what was done stays done.
UPDATE dead_letter_actions SET state = 'failed', finished_at = now(), error = :error
WHERE shard = :shard AND tenant = :tenant AND id = :id AND state = 'running'
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)

-- name: running_actions
SELECT tenant, id::text AS id, per_second FROM dead_letter_actions
WHERE shard = :shard AND state = 'running' ORDER BY created_at LIMIT :limit

-- name: read_action
SELECT id::text AS id, tenant, kind, state, type, pool, fingerprint, since::text AS since,
       before::text AS before, payload, per_second, matched, done, cursor::text AS cursor,
       created_at, finished_at, error
FROM dead_letter_actions WHERE shard = :shard AND tenant = :tenant AND id = :id

-- name: list_actions
-- The newest actions of a tenant, without their payloads.
SELECT id::text AS id, tenant, kind, state, type, pool, fingerprint, since::text AS since,
       before::text AS before, NULL::bytea AS payload, per_second, matched, done, cursor::text AS cursor,
       created_at, finished_at, error
FROM dead_letter_actions WHERE shard = :shard AND tenant = :tenant
ORDER BY created_at DESC LIMIT :limit

-- name: forget_actions
-- Bounded: at most so many a round.
DELETE FROM dead_letter_actions WHERE (shard, tenant, id) IN (
    SELECT shard, tenant, id FROM dead_letter_actions
    WHERE shard = :shard AND finished_at < :before LIMIT :limit
)
