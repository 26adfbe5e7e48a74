-- name: look_before
-- What has to be known before a tenant is moved: it is held until the transaction ends.
SELECT tenants.id, tenants.state, coalesce(tenants.shard, tenants.id % cluster.shard_count) AS shard,
       coalesce(cluster.shards, cluster.shard_count) AS shards,
       (SELECT count(*)::int FROM tenants AS other
        WHERE coalesce(other.shard, other.id % cluster.shard_count) = :to) AS tenants_there,
       EXISTS (SELECT FROM tenant_moves WHERE finished_at IS NULL) AS is_another_moving,
       EXISTS (SELECT FROM region_state) AS has_regions, tenants.parts <> '{}' AS has_parts
FROM tenants, cluster WHERE tenants.name = :name FOR UPDATE OF tenants

-- name: ask
-- One at a time: whoever comes while another asks waits for that, and is told so.
INSERT INTO tenant_moves (tenant, from_shard, to_shard, wait_seconds)
VALUES (:tenant, :from_shard, :to_shard, :wait_seconds)
ON CONFLICT ((finished_at IS NULL)) WHERE finished_at IS NULL DO NOTHING
RETURNING id

-- name: count_move
-- Whoever connects from now on learns of it first.
UPDATE cluster SET moves = moves + 1

-- name: is_moved_to
SELECT id FROM tenant_moves WHERE to_shard = :shard AND finished_at IS NULL

-- name: hold_of_tenant
-- The move of a tenant that is not over, until the transaction ends.
SELECT moves.id, moves.tenant, moves.from_shard, moves.to_shard, moves.state
FROM tenant_moves AS moves JOIN tenants ON tenants.id = moves.tenant
WHERE tenants.name = :name AND moves.finished_at IS NULL FOR UPDATE OF moves

-- name: cancel
-- Its owner moves the rows back.
UPDATE tenant_moves SET cancelled_by = :by, note = :note WHERE id = :move

-- name: stop_tenant
-- Servers hear of it as they do of any change of a tenant.
UPDATE tenants SET moving_to = :to_shard, updated_at = clock_timestamp() WHERE id = :tenant

-- name: take_away
-- The shard that it moves to is nobody's from now on: what its owner may still do finds another term.
-- Said again before rows come: a claim that had begun by then did not see the move.
UPDATE shards SET term = term + 1, owner = '', owner_url = '', expires_at = now() - interval '1 second'
WHERE shard = :shard

-- name: list_moves
-- Those under way, and the last that are over.
SELECT moves.id, moves.tenant, tenants.name, moves.from_shard, moves.to_shard, moves.state, moves.asked_at,
       moves.wait_seconds, moves.finished_at, moves.rows_moved, moves.note
FROM tenant_moves AS moves JOIN tenants ON tenants.id = moves.tenant
ORDER BY moves.finished_at IS NOT NULL, moves.id DESC LIMIT :limit

-- name: heard
INSERT INTO tenant_move_hearers (move, server, process)
SELECT id, :server, :process::int FROM tenant_moves WHERE tenant = ANY(:tenants::int[]) AND finished_at IS NULL
ON CONFLICT DO NOTHING

-- name: look_at_move
-- How far the move of a tenant is, and what it waits for.
SELECT moves.id, moves.tenant, moves.from_shard, moves.to_shard, moves.state,
       extract(epoch FROM now() - moves.asked_at)::float AS asked_seconds, moves.wait_seconds, moves.cancelled_by,
       coalesce((SELECT array_agg(servers.name ORDER BY servers.name) FROM servers WHERE servers.expires_at >= now()
                 AND NOT EXISTS (SELECT FROM tenant_move_hearers AS hearer
                                 WHERE hearer.move = moves.id AND hearer.server = servers.name)), '{}') AS unheard,
       coalesce((SELECT extract(epoch FROM now() - max(hearer.heard_at)) FROM tenant_move_hearers AS hearer
                 WHERE hearer.move = moves.id), 0)::float AS heard_seconds,
       -- whoever has not heard of it and has connections nevertheless: it stands still, and may go on. Logins of tenants
       -- call themselves whatever they like: a number is compared as a text, and theirs do not count
       (SELECT count(*)::int FROM pg_stat_activity AS others
        WHERE others.datname = current_database() AND others.application_name ~ '^fairway-(hot|people|background)(/[0-9]+)?$'
          AND (others.usename = session_user OR NOT EXISTS (SELECT FROM sql_logins WHERE login = others.usename))
          AND NOT EXISTS (SELECT FROM tenant_move_hearers AS hearer WHERE hearer.move = moves.id
                          AND hearer.process::text = split_part(others.application_name, '/', 2))) AS unheard_connections,
       (SELECT count(*)::int FROM tenants, cluster
        WHERE coalesce(tenants.shard, tenants.id % cluster.shard_count) = moves.to_shard) AS tenants_there,
       ARRAY(SELECT jobs.id::text FROM jobs WHERE jobs.shard = moves.from_shard AND jobs.state = 2
             AND jobs.tenant = moves.tenant LIMIT 100) AS running,
       EXISTS (SELECT FROM bulk_actions AS acts WHERE acts.shard = moves.from_shard AND acts.tenant = moves.tenant
               AND acts.state = 'running') AS has_bulk_actions,
       EXISTS (SELECT FROM flows WHERE flows.shard = moves.from_shard AND flows.tenant = moves.tenant
               AND flows.owed > 0) AS has_owed_flows,
       EXISTS (SELECT FROM usage_log AS used WHERE used.shard = moves.from_shard
               AND moves.tenant = ANY(used.tenant_ids)) AS has_usage
FROM tenant_moves AS moves WHERE moves.tenant = :tenant AND moves.finished_at IS NULL

-- name: hearers
-- Processes that know of a move.
SELECT DISTINCT process FROM tenant_move_hearers WHERE move = :move

-- name: tenants_logins
SELECT login FROM sql_logins WHERE login <> session_user

-- name: end_connections
-- Of all other processes: what they still send is not done. Whoever ends them may not end those of tenants' logins.
SELECT count(*) FILTER (WHERE pg_terminate_backend(others.pid))::int AS ended
FROM (SELECT pid FROM pg_stat_activity WHERE datname = current_database()
        AND application_name ~ '^fairway-(hot|people|background)(/[0-9]+)?$' AND usename <> ALL(:logins::text[])
        AND split_part(application_name, '/', 2) <> ALL(:known::bigint[]::text[])) AS others

-- name: say
UPDATE tenant_moves SET note = :note WHERE id = :move AND note <> :note

-- name: hold
-- The move until the transaction ends, for whoever owns the shard that it leads away from.
SELECT moves.id FROM tenant_moves AS moves JOIN shards ON shards.shard = moves.from_shard AND shards.term = :term
WHERE moves.id = :move AND moves.state = :state FOR UPDATE OF moves FOR KEY SHARE OF shards

-- name: begin
UPDATE tenant_moves SET state = 'moving', moving_since = now(), note = '' WHERE id = :move

-- name: turn_back
UPDATE tenant_moves SET state = 'returning', note = :note WHERE id = :move

-- name: call_off
UPDATE tenant_moves SET state = 'called_off', finished_at = now(), note = :note WHERE id = :move

-- name: go_on_as_before
UPDATE tenants SET moving_to = NULL, updated_at = clock_timestamp() WHERE id = :tenant

-- name: count_rows
-- What was said of a step that failed holds no longer; that somebody wants it back does.
UPDATE tenant_moves SET rows_moved = rows_moved + :rows,
                        note = CASE WHEN state = 'moving' AND cancelled_by IS NULL THEN '' ELSE note END
WHERE id = :move

-- name: finish
UPDATE tenant_moves SET state = 'done', finished_at = now(), note = '' WHERE id = :move

-- name: switch
UPDATE tenants SET shard = :to_shard, moving_to = NULL, updated_at = clock_timestamp(),
                   moved_from = CASE WHEN :from_shard::int = ANY(moved_from) THEN moved_from
                                     ELSE moved_from || :from_shard::int END
WHERE id = :tenant

-- name: give_away
-- All of the shard is on disk, and nothing of it runs: whoever takes it goes on at once. Epochs begin with terms, and
-- of the jobs that came along they only ever grow: a worker that nobody has heard of since may hold one that is on no disk.
UPDATE shards SET expires_at = '-infinity',
                  term = greatest(term, (SELECT was.term FROM shards AS was WHERE was.shard = :from_shard))
WHERE shard = :to_shard

-- The next rows of a table by their key, so many at a time; what has the same key goes together. Held is the shard whose
-- owner does it: the one that the move leads away from, also when its rows go back there; of what came too late, the one
-- that the tenant is in. What is there already stays behind. (OFFSET: it is looked up row by row, whatever is there by then.)
-- name: move_schedules
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(name) AS key
    FROM (SELECT name FROM schedules WHERE shard = :from_shard AND tenant = :tenant AND name > :after::text
          ORDER BY name LIMIT :limit) AS few
), moved AS (
    UPDATE schedules AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.name > :after::text
      AND late.name <= (SELECT key FROM last)
      AND NOT EXISTS (SELECT FROM schedules AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.name = late.name OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_schedule_runs
WITH few AS MATERIALIZED (
    SELECT name, tick FROM schedule_runs WHERE shard = :from_shard AND tenant = :tenant
      AND (name, tick) > ((:after::text::jsonb ->> 0), (:after::text::jsonb ->> 1)::timestamptz)
    ORDER BY name, tick LIMIT :limit
), last AS MATERIALIZED (
    SELECT name, tick FROM few ORDER BY name DESC, tick DESC LIMIT 1
), moved AS (
    UPDATE schedule_runs AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant
      AND (late.name, late.tick) > ((:after::text::jsonb ->> 0), (:after::text::jsonb ->> 1)::timestamptz)
      AND (late.name, late.tick) <= (SELECT name, tick FROM last)
      AND NOT EXISTS (SELECT FROM schedule_runs AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.name = late.name AND kept.tick = late.tick OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT (SELECT count(*)::int FROM few) AS found, (SELECT count(*)::int FROM moved) AS moved,
       (SELECT jsonb_build_array(name, tick)::text FROM last) AS last

-- name: move_webhooks
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(id::text) AS key
    FROM (SELECT id FROM webhooks WHERE shard = :from_shard AND tenant = :tenant AND id > :after::text::uuid
          ORDER BY id LIMIT :limit) AS few
), moved AS (
    UPDATE webhooks AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.id > :after::text::uuid
      AND late.id <= (SELECT key FROM last)::uuid
      AND NOT EXISTS (SELECT FROM webhooks AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.id = late.id OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_webhook_deliveries
WITH few AS MATERIALIZED (
    SELECT webhook, number FROM webhook_deliveries WHERE shard = :from_shard AND tenant = :tenant
      AND (webhook, number) > ((:after::text::jsonb ->> 0)::uuid, (:after::text::jsonb ->> 1)::bigint)
    ORDER BY webhook, number LIMIT :limit
), last AS MATERIALIZED (
    SELECT webhook, number FROM few ORDER BY webhook DESC, number DESC LIMIT 1
), moved AS (
    UPDATE webhook_deliveries AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant
      AND (late.webhook, late.number) > ((:after::text::jsonb ->> 0)::uuid, (:after::text::jsonb ->> 1)::bigint)
      AND (late.webhook, late.number) <= (SELECT webhook, number FROM last)
      AND NOT EXISTS (SELECT FROM webhook_deliveries AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.webhook = late.webhook AND kept.number = late.number OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT (SELECT count(*)::int FROM few) AS found, (SELECT count(*)::int FROM moved) AS moved,
       (SELECT jsonb_build_array(webhook, number)::text FROM last) AS last

-- name: move_bulk_actions
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(id::text) AS key
    FROM (SELECT id FROM bulk_actions WHERE shard = :from_shard AND tenant = :tenant AND id > :after::text::uuid
          ORDER BY id LIMIT :limit) AS few
), moved AS (
    UPDATE bulk_actions AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.id > :after::text::uuid
      AND late.id <= (SELECT key FROM last)::uuid
      AND NOT EXISTS (SELECT FROM bulk_actions AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.id = late.id OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_held_jobs
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(id::text) AS key
    FROM (SELECT id FROM held_jobs WHERE shard = :from_shard AND tenant = :tenant AND id > :after::text::uuid
          ORDER BY id LIMIT :limit) AS few
), moved AS (
    UPDATE held_jobs AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.id > :after::text::uuid
      AND late.id <= (SELECT key FROM last)::uuid
      AND NOT EXISTS (SELECT FROM held_jobs AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.id = late.id OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_flows
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(id::text) AS key
    FROM (SELECT id FROM flows WHERE shard = :from_shard AND tenant = :tenant AND id > :after::text::uuid
          ORDER BY id LIMIT :limit) AS few
), moved AS (
    UPDATE flows AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.id > :after::text::uuid
      AND late.id <= (SELECT key FROM last)::uuid
      AND NOT EXISTS (SELECT FROM flows AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.id = late.id OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_checkpoints
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(job::text) AS key
    FROM (SELECT job FROM checkpoints WHERE shard = :from_shard AND tenant = :tenant AND job > :after::text::uuid
          ORDER BY job LIMIT :limit) AS few
), moved AS (
    UPDATE checkpoints AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.job > :after::text::uuid
      AND late.job <= (SELECT key FROM last)::uuid
      AND NOT EXISTS (SELECT FROM checkpoints AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.job = late.job AND kept.epoch = late.epoch AND kept.number = late.number OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_jobs
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(id::text) AS key
    FROM (SELECT id FROM jobs WHERE shard = :from_shard AND tenant = :tenant AND id > :after::text::uuid
          ORDER BY id LIMIT :limit) AS few
), moved AS (
    UPDATE jobs AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.id > :after::text::uuid
      AND late.id <= (SELECT key FROM last)::uuid
      AND NOT EXISTS (SELECT FROM jobs AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.id = late.id OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_idempotency
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(key) AS key
    FROM (SELECT key FROM idempotency WHERE shard = :from_shard AND tenant = :tenant AND key > :after::text
          ORDER BY key LIMIT :limit) AS few
), moved AS (
    UPDATE idempotency AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.key > :after::text
      AND late.key <= (SELECT key FROM last)
      AND NOT EXISTS (SELECT FROM idempotency AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.key = late.key OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_unique_jobs
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(encode(digest, 'hex')) AS key
    FROM (SELECT digest FROM unique_jobs WHERE shard = :from_shard AND tenant = :tenant AND digest > decode(:after::text, 'hex')
          ORDER BY digest LIMIT :limit) AS few
), moved AS (
    UPDATE unique_jobs AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.digest > decode(:after::text, 'hex')
      AND late.digest <= decode((SELECT key FROM last), 'hex')
      AND NOT EXISTS (SELECT FROM unique_jobs AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.digest = late.digest OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_job_logs
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(job::text) AS key
    FROM (SELECT job FROM job_logs WHERE shard = :from_shard AND tenant = :tenant AND job > :after::text::uuid
          ORDER BY job LIMIT :limit) AS few
), moved AS (
    UPDATE job_logs AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.job > :after::text::uuid
      AND late.job <= (SELECT key FROM last)::uuid
      AND NOT EXISTS (SELECT FROM job_logs AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.job = late.job AND kept.epoch = late.epoch AND kept.first_n = late.first_n AND kept.written_at = late.written_at OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_event_log
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(last_position)::text AS key
    FROM (SELECT last_position FROM event_log WHERE shard = :from_shard AND tenant = :tenant AND last_position > :after::text::bigint
          ORDER BY last_position LIMIT :limit) AS few
), moved AS (
    UPDATE event_log AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.last_position > :after::text::bigint
      AND late.last_position <= (SELECT key FROM last)::bigint
      AND NOT EXISTS (SELECT FROM event_log AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.last_position = late.last_position AND kept.written_at = late.written_at OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_event_inbox
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(id)::text AS key
    FROM (SELECT id FROM event_inbox WHERE shard = :from_shard AND tenant = :tenant AND id > :after::text::bigint
          ORDER BY id LIMIT :limit) AS few
), moved AS (
    UPDATE event_inbox AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.id > :after::text::bigint
      AND late.id <= (SELECT key FROM last)::bigint
      AND NOT EXISTS (SELECT FROM event_inbox AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.id = late.id OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_outbox
WITH last AS MATERIALIZED (
    SELECT count(*)::int AS found, max(id::text) AS key
    FROM (SELECT id FROM outbox WHERE shard = :from_shard AND tenant = :tenant AND id > :after::text::uuid
          ORDER BY id LIMIT :limit) AS few
), moved AS (
    UPDATE outbox AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND late.id > :after::text::uuid
      AND late.id <= (SELECT key FROM last)::uuid
      AND NOT EXISTS (SELECT FROM outbox AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND kept.id = late.id OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT found, (SELECT count(*)::int FROM moved) AS moved, key AS last FROM last

-- name: move_small
-- A row or a few: the end of the log, debts of fair share, and the lock of its flows.
WITH in_event_heads AS (
    UPDATE event_heads SET shard = :to_shard WHERE shard = :from_shard AND tenant = :tenant
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE) RETURNING 1
), in_fair_share AS (
    UPDATE fair_share SET shard = :to_shard WHERE shard = :from_shard AND tenant = :tenant
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE) RETURNING 1
), in_flow_turns AS (
    UPDATE flow_turns SET shard = :to_shard WHERE shard = :from_shard AND tenant = :tenant
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE) RETURNING 1
)
SELECT ((SELECT count(*) FROM in_event_heads)
     + (SELECT count(*) FROM in_fair_share)
     + (SELECT count(*) FROM in_flow_turns))::int AS moved

-- name: clear_the_way
-- What a server that was stopped may have left where the tenant was before: no more than a debt, a lock, and a position
-- of which the newer one comes along.
WITH debts AS (DELETE FROM fair_share WHERE shard = :to_shard AND tenant = :tenant),
     heads AS (DELETE FROM event_heads WHERE shard = :to_shard AND tenant = :tenant)
DELETE FROM flow_turns WHERE shard = :to_shard AND tenant = :tenant

-- name: late_rows
-- Rows of tenants that were moved, in shards where they were before: a transaction of the tenant's own was open all the
-- while, or a line of a run came after its end.
SELECT asked.tenant, asked.shard FROM unnest(:tenants::int[], :shards::int[]) AS asked (tenant, shard)
WHERE EXISTS (SELECT FROM jobs AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM flows AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM outbox AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM event_inbox AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM idempotency AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM unique_jobs AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM job_logs AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM checkpoints AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM schedules AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM schedule_runs AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM webhooks AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM webhook_deliveries AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM bulk_actions AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)
   OR EXISTS (SELECT FROM held_jobs AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)

-- name: hold_home
-- A tenant that is there and stays, until the transaction ends: whoever has not heard of its next move brings nothing back.
SELECT id FROM tenants WHERE id = :tenant AND shard = :to_shard AND moving_to IS NULL FOR SHARE

-- name: drop_double_keys
-- A key that was taken in both places: the older one counts.
DELETE FROM idempotency AS old WHERE old.shard = :from_shard AND old.tenant = :tenant
AND EXISTS (SELECT FROM idempotency AS kept
            WHERE kept.shard = :to_shard AND kept.tenant = :tenant AND kept.key = old.key)

-- name: drop_double_unique_jobs
DELETE FROM unique_jobs AS old WHERE old.shard = :from_shard AND old.tenant = :tenant
AND EXISTS (SELECT FROM unique_jobs AS kept
            WHERE kept.shard = :to_shard AND kept.tenant = :tenant AND kept.digest = old.digest)

-- name: tell_owners
-- A shard is free: whoever shares them out looks now.
SELECT pg_notify(:channel, '') AS told
