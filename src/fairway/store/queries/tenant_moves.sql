-- name: look_before
-- What has to be known before a tenant is moved: it is held until the transaction ends.
SELECT tenants.id, tenants.state, coalesce(tenants.shard, tenants.id % cluster.shard_count) AS shard,
       coalesce(cluster.shards, cluster.shard_count) AS shards,
       (SELECT count(*)::int FROM tenants AS other
        WHERE coalesce(other.shard, other.id % cluster.shard_count) = :to) AS tenants_there,
       ARRAY(SELECT other.name FROM tenants AS other WHERE other.state = 'deleted'
             AND coalesce(other.shard, other.id % cluster.shard_count) = :to) AS deleted_there,
       EXISTS (SELECT FROM tenant_moves WHERE finished_at IS NULL) AS is_another_moving,
       EXISTS (SELECT FROM region_state) AS has_regions, tenants.parts <> '{}' AS has_parts,
       -- as `look_at_move` says
       coalesce((SELECT books.stated_until FROM billing_shards AS books
                 WHERE books.shard = coalesce(tenants.shard, tenants.id % cluster.shard_count))
                < coalesce((SELECT books.stated_until FROM billing_shards AS books WHERE books.shard = :to),
                           date_trunc('month', now(), 'UTC')), false) AS has_unstated_month
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

-- name: shards_moved_to
-- There is one move at a time.
SELECT to_shard FROM tenant_moves WHERE finished_at IS NULL

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
       EXISTS (SELECT FROM usage_log AS used WHERE used.shard IN (moves.from_shard, book_of(moves.from_shard))
               AND moves.tenant = ANY(used.tenant_ids)) AS has_usage,
       -- each shard states its own tenants: whoever came to one that is ahead would be stated by neither
       coalesce((SELECT books.stated_until FROM billing_shards AS books WHERE books.shard = moves.from_shard)
                < coalesce((SELECT books.stated_until FROM billing_shards AS books WHERE books.shard = moves.to_shard),
                           date_trunc('month', now(), 'UTC')), false) AS has_unstated_month
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

-- name: move_{table}
-- The next rows of a table by their key, so many at a time; what has the same key goes together. Held is the shard whose
-- owner does it: the one that the move leads away from, also when its rows go back there; of what came too late, the one
-- that the tenant is in. What is there already stays behind. (OFFSET: it is looked up row by row, whatever is there by then.)
WITH few AS MATERIALIZED (
    SELECT {key} FROM {table} WHERE shard = :from_shard AND tenant = :tenant AND ({key}) > ({after})
    ORDER BY {key} LIMIT :limit
), last AS MATERIALIZED (
    SELECT {key} FROM few ORDER BY {key_falling} LIMIT 1
), moved AS (
    UPDATE {table} AS late SET shard = :to_shard
    WHERE late.shard = :from_shard AND late.tenant = :tenant AND ({late_key}) > ({after})
      AND ({late_key}) <= (SELECT {key} FROM last)
      AND NOT EXISTS (SELECT FROM {table} AS kept WHERE kept.shard = :to_shard AND kept.tenant = :tenant
                      AND {is_kept} OFFSET 0)
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE)
    RETURNING 1
)
SELECT (SELECT count(*)::int FROM few) AS found, (SELECT count(*)::int FROM moved) AS moved,
       (SELECT jsonb_build_array({key})::text FROM last) AS last

-- name: move_whole_{whole_table}
WITH moved AS (
    UPDATE {whole_table} SET shard = :to_shard WHERE shard = :from_shard AND tenant = :tenant
      AND EXISTS (SELECT FROM shards WHERE shard = :held AND term = :term FOR KEY SHARE) RETURNING 1
)
SELECT count(*)::int AS moved FROM moved

-- name: clear_{whole_table}
-- What a server that was stopped may have left where the tenant was before: no more than a debt, a lock, and a position
-- of which the newer one comes along.
DELETE FROM {whole_table} WHERE shard = :to_shard AND tenant = :tenant

-- name: late_rows
-- Rows of tenants that were moved, in shards where they were before: a transaction of the tenant's own was open all the
-- while, or a line of a run came after its end.
SELECT asked.tenant, asked.shard FROM unnest(:tenants::int[], :shards::int[]) AS asked (tenant, shard)
WHERE
{any table: EXISTS (SELECT FROM {table} AS late WHERE late.shard = asked.shard AND late.tenant = asked.tenant)}

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
