-- name: write_leases
-- A lease becomes a fact: medium and long before the worker hears of it, short if it still runs.
-- Sent again after a lost answer, a lease that was written the first time counts as written.
-- The run began when its lease was granted, not when that is written down.
UPDATE jobs SET state = 2, epoch = lease.epoch, session = lease.session, token = lease.token,
                started_at = coalesce(lease.started_at, now())
FROM unnest(:shards::int[], :tenants::int[], :ids::uuid[], :epochs::bigint[], :sessions::uuid[], :tokens::uuid[],
            :started_ats::timestamptz[])
     AS lease (shard, tenant, id, epoch, session, token, started_at)
WHERE (jobs.shard, jobs.tenant, jobs.id) BETWEEN (lease.shard, lease.tenant, lease.id) AND (lease.shard, lease.tenant, lease.id)
  AND jobs.id = lease.id
  AND CASE jobs.state WHEN 1 THEN jobs.epoch < lease.epoch
                      WHEN 2 THEN jobs.epoch = lease.epoch AND jobs.token = lease.token END
  AND lease.shard = ANY (ARRAY(
      SELECT held.shard FROM unnest(:owned::int[], :terms::bigint[]) AS owned (shard, term)
      CROSS JOIN LATERAL (
          SELECT shards.shard FROM shards WHERE shard = owned.shard AND term = owned.term FOR KEY SHARE
      ) AS held))
RETURNING jobs.id::text AS id

-- name: unlocked
-- Of these jobs, those whose rows nobody holds: asked when a statement on all of them stood at one for long.
SELECT job.id::text AS id
FROM unnest(:shards::int[], :tenants::int[], :ids::uuid[]) AS asked (shard, tenant, id)
CROSS JOIN LATERAL (
    SELECT id FROM jobs WHERE shard = asked.shard AND tenant = asked.tenant AND id = asked.id
    FOR NO KEY UPDATE SKIP LOCKED
) AS job

-- name: read_running
-- The written leases of a shard after one job, for an owner that has just taken over. Without their
-- payloads: who runs them has those.
SELECT id::text AS id, tenant, pool, type, priority, lane, epoch, attempts, deliveries, timeout_ms,
       ''::bytea AS payload, failures, job_timing(execute_at, not_after, on_late) AS timing,
       NULL::text AS place, limits, trace,
       session::text AS session, token::text AS token,
       extract(epoch FROM now() - started_at)::float8 AS running_seconds
FROM jobs WHERE shard = :shard AND state = 2 AND id > :after::uuid
ORDER BY id LIMIT :limit

-- name: see_sessions
-- One narrow row a worker and server, not one a job or a shard. The server is whoever owns one of these shards
-- under its term: one that owns none of them any more writes nothing. Answers how many rows were written.
-- Who does not know whose a session is leaves that as it was.
WITH here AS MATERIALIZED (
    SELECT DISTINCT shards.owner FROM unnest(:owned::int[], :terms::bigint[]) AS owned (shard, term)
    JOIN shards ON shards.shard = owned.shard AND shards.term = owned.term
), seen AS (
    INSERT INTO worker_sessions AS known (server, session, worker, seen_at, tenant, opener)
    SELECT here.owner, beat.session, beat.worker, now(), beat.tenant, beat.opener
    FROM here CROSS JOIN unnest(:sessions::uuid[], :workers::text[], :tenants::int[], :openers::text[])
         AS beat (session, worker, tenant, opener)
    ON CONFLICT (server, session) DO UPDATE SET seen_at = excluded.seen_at,
        tenant = CASE WHEN excluded.opener IS NULL THEN known.tenant ELSE excluded.tenant END,
        opener = coalesce(excluded.opener, known.opener)
    RETURNING 1
)
SELECT count(*) FROM seen

-- name: whose_sessions
-- Who opened these sessions, by the newest word of any server, and whether that key is valid still. Of a shard
-- that a server of the build before owned, what it wrote.
SELECT DISTINCT ON (found.session) replace(found.session::text, '-', '') AS session, found.worker, found.tenant, found.opener,
       coalesce((SELECT revoked_at IS NOT NULL OR expires_at <= now() FROM api_keys WHERE id = found.opener), false) AS is_revoked
FROM (
    SELECT session, worker, tenant, opener, seen_at FROM worker_sessions
    WHERE session = ANY(:sessions::uuid[]) AND opener IS NOT NULL
    UNION ALL
    SELECT session, worker, tenant, opener, seen_at FROM sessions
    WHERE shard = :shard AND session = ANY(:sessions::uuid[]) AND opener IS NOT NULL
) AS found
ORDER BY found.session, found.seen_at DESC

-- name: silent_sessions
-- How long each session that this server heard has been silent, by the database's clock.
SELECT replace(session::text, '-', '') AS session, extract(epoch FROM now() - seen_at)::float8 AS silent_seconds
FROM worker_sessions
WHERE server = ANY (ARRAY(
          SELECT shards.owner FROM unnest(:owned::int[], :terms::bigint[]) AS owned (shard, term)
          JOIN shards ON shards.shard = owned.shard AND shards.term = owned.term LIMIT 1))
  AND seen_at < now() - :silence::interval

-- name: live_sessions
-- Whom the shard's last owner heard a moment ago, and those whose servers are gone: the last owner may have died
-- before it heard the workers of the one before it. With the tenant, of those that run one tenant's jobs only.
SELECT DISTINCT replace(found.session::text, '-', '') AS session, found.tenant
FROM (
    SELECT session, tenant FROM worker_sessions
    WHERE seen_at >= now() - :silence::interval
      AND (server = :last_owner
           OR NOT EXISTS (SELECT FROM servers WHERE servers.name = worker_sessions.server AND servers.expires_at >= now()))
    UNION ALL
    SELECT session, tenant FROM sessions WHERE shard = :shard AND seen_at >= now() - :silence::interval
) AS found

-- name: forget_sessions
-- Of this server's rows.
DELETE FROM worker_sessions
WHERE server = ANY (ARRAY(
          SELECT shards.owner FROM unnest(:owned::int[], :terms::bigint[]) AS owned (shard, term)
          JOIN shards ON shards.shard = owned.shard AND shards.term = owned.term LIMIT 1))
  AND session = ANY(:sessions::uuid[])

-- name: read_held
-- What the store knows of leases that workers say they hold, or that must be sent again (with their
-- payloads then). Rows of any state: the lease may be written, unwritten or over.
SELECT job.id::text AS id, job.tenant, job.pool, job.type, job.priority, job.lane, job.epoch, job.attempts,
       job.deliveries, job.timeout_ms,
       CASE WHEN :with_payloads::bool THEN job.payload ELSE ''::bytea END AS payload, job.failures,
       job_timing(job.execute_at, job.not_after, job.on_late) AS timing, NULL::text AS place, job.limits, job.trace,
       job.state, job.token::text AS token,
       coalesce(extract(epoch FROM now() - job.started_at), 0)::float8 AS running_seconds
FROM unnest(:shards::int[], :tenants::int[], :ids::uuid[]) AS asked (shard, tenant, id)
CROSS JOIN LATERAL (
    SELECT * FROM jobs WHERE shard = asked.shard AND tenant = asked.tenant AND id = asked.id OFFSET 0
) AS job
