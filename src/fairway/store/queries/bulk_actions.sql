-- name: begin_action
INSERT INTO bulk_actions (shard, tenant, id, act, states, type, pool, tag, fingerprint, since, before,
                          payload, per_second, matched, cursor)
VALUES (:shard, :tenant, :id, :act, :states, :type, :pool, :tag, :fingerprint, :since, :before, :payload,
        :per_second, :matched, :cursor)

-- name: move_action
-- So far it has come. In one transaction with what it did; one that was aborted moves no more. One that did nothing
-- but meet refusals has failed.
UPDATE bulk_actions
SET done = done + :done, asked_to_stop = asked_to_stop + :asked_to_stop, skipped = skipped + :skipped,
    failed = failed + :failed, cursor = :cursor, error = coalesce(:error, error),
    state = CASE WHEN NOT :is_over THEN state
                 WHEN done + :done + asked_to_stop + :asked_to_stop = 0 AND failed + :failed > 0 THEN 'failed'
                 ELSE 'done' END,
    finished_at = CASE WHEN :is_over THEN now() END
WHERE shard = :shard AND tenant = :tenant AND id = :id AND state = 'running'
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)

-- name: lock_action
-- Who moves an action holds it, so that an abort is before a batch or after it, never within. No statement of the step
-- may take longer than this: others wait behind it.
SELECT id::text AS id, tenant, act, state, states, type, pool, tag, fingerprint, since::text AS since,
       before::text AS before, payload, per_second, matched, done, asked_to_stop, skipped, failed, cursor::text AS cursor,
       created_at, finished_at, error
FROM set_config('statement_timeout', '5s', true), bulk_actions
WHERE shard = :shard AND tenant = :tenant AND id = :id AND state = 'running' FOR UPDATE OF bulk_actions

-- name: abort_action
UPDATE bulk_actions SET state = 'aborted', finished_at = now()
WHERE shard = :shard AND tenant = :tenant AND id = :id AND state = 'running'

-- name: fail_action
-- The store refused too much of it, or was too slow for it too often; or (`if_forgotten`) whoever began it is not there any
-- more. What was done stays done.
UPDATE bulk_actions SET state = 'failed', finished_at = now(), error = :error
WHERE shard = :shard AND tenant = :tenant AND id = :id AND state = 'running'
  AND (NOT :if_forgotten OR NOT EXISTS (SELECT FROM tenants WHERE tenants.id = :tenant))
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)

-- name: running_actions
SELECT tenant, id::text AS id, act, per_second FROM bulk_actions
WHERE shard = :shard AND state = 'running' ORDER BY created_at LIMIT :limit

-- name: count_running
-- How many a tenant has under way.
SELECT count(*) AS running FROM bulk_actions WHERE shard = :shard AND tenant = :tenant AND state = 'running'

-- name: read_action
SELECT id::text AS id, tenant, act, state, states, type, pool, tag, fingerprint, since::text AS since,
       before::text AS before, payload, per_second, matched, done, asked_to_stop, skipped, failed, cursor::text AS cursor,
       created_at, finished_at, error
FROM bulk_actions WHERE shard = :shard AND tenant = :tenant AND id = :id

-- name: list_actions
-- The newest actions of a tenant, without their payloads.
SELECT id::text AS id, tenant, act, state, states, type, pool, tag, fingerprint, since::text AS since,
       before::text AS before, NULL::bytea AS payload, per_second, matched, done, asked_to_stop,
       skipped, failed, cursor::text AS cursor, created_at, finished_at, error
FROM bulk_actions WHERE shard = :shard AND tenant = :tenant
ORDER BY created_at DESC LIMIT :limit

-- name: forget_actions
-- Bounded: at most so many a round.
DELETE FROM bulk_actions WHERE (shard, tenant, id) IN (
    SELECT shard, tenant, id FROM bulk_actions
    WHERE shard = :shard AND finished_at < :before LIMIT :limit
)
