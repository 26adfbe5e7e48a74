-- name: hold_call
-- A call's jobs, for a home that cannot be reached; the same ids again are the same jobs.
INSERT INTO held_jobs (shard, tenant, id, last_id, kind, job_count, body, offered_to, offered_under)
VALUES (:shard, :tenant, :id::uuid, :last_id::uuid, 0, :jobs, :body, :offered_to, coalesce(:offered_under::bigint[], '{-1,-1}'))
ON CONFLICT DO NOTHING

-- name: hold_jobs
-- Unfinished jobs of a tenant whose home is elsewhere leave the jobs in the same statement: what is held is never run here,
-- and what runs here is never held. Whoever asks undoes all of it if one is not held: another row of its id came meanwhile.
-- Members of flows stay, and so does what has its payload in object storage. What became of a call that began with the job
-- gives way to it. Not the first job of a call that still waits here: it was handed over to this region, which has yet to
-- hear that it has it, and the call goes then.
WITH gone AS (
    DELETE FROM jobs
    USING unnest(:tenants::int[], :ids::uuid[]) AS asked (tenant, id)
    WHERE (jobs.shard, jobs.tenant, jobs.id) BETWEEN (:shard, asked.tenant, asked.id) AND (:shard, asked.tenant, asked.id)
      AND jobs.id = asked.id
      AND jobs.state IN (0, 1) AND jobs.flows IS NULL AND substring(jobs.payload FROM 1 FOR :mark_bytes) <> :mark
      AND NOT EXISTS (SELECT FROM held_jobs AS waiting WHERE waiting.shard = :shard AND waiting.tenant = asked.tenant
                                                         AND waiting.id = asked.id AND waiting.told IS NULL)
      AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
    RETURNING jobs.*
), held AS (
    INSERT INTO held_jobs (shard, tenant, id, last_id, kind, job_count, body)
    SELECT gone.shard, gone.tenant, gone.id, gone.id, 1, 1, convert_to(json_build_object(
        'row', row_to_json(gone), 'type', job_types.name, 'pool', pools.name,
        'key', key.key, 'body_hash', encode(key.body_hash, 'hex')
    )::text, 'UTF8')
    FROM gone
    JOIN job_types ON job_types.id = gone.type
    JOIN pools ON pools.number = gone.pool
    LEFT JOIN idempotency AS key ON key.shard = gone.shard AND key.tenant = gone.tenant AND key.job = gone.id
    ON CONFLICT (shard, tenant, id) DO UPDATE
        SET last_id = excluded.last_id, kind = excluded.kind, job_count = excluded.job_count, body = excluded.body,
            accepted_at = excluded.accepted_at, offered_to = NULL, told = NULL
        WHERE held_jobs.told IS NOT NULL
    RETURNING held_jobs.id
)
SELECT gone.id::text AS id, held.id IS NOT NULL AS is_held FROM gone LEFT JOIN held ON held.id = gone.id

-- name: hold_schedules
WITH gone AS (
    DELETE FROM schedules
    WHERE shard = :shard AND tenant = :tenant AND name IN (
        SELECT name FROM schedules WHERE shard = :shard AND tenant = :tenant ORDER BY name LIMIT :limit
    )
      AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
    RETURNING schedules.*
)
INSERT INTO held_jobs (shard, tenant, id, last_id, kind, job_count, body)
SELECT gone.shard, gone.tenant, made.id, made.id, 2, 0, convert_to(json_build_object(
    'row', row_to_json(gone), 'type', job_types.name, 'pool', pools.name
)::text, 'UTF8')
FROM gone
CROSS JOIN LATERAL (SELECT md5(gone.tenant::text || '/' || gone.name)::uuid AS id) AS made
JOIN job_types ON job_types.id = gone.type
JOIN pools ON pools.number = gone.pool
ON CONFLICT (shard, tenant, id) DO UPDATE SET body = excluded.body, offered_to = NULL, told = NULL

-- name: tenants_with_rows
-- Those of these that have anything here that could be handed over, whether or not it has ended.
SELECT asked.tenant FROM unnest(:tenants::int[]) AS asked (tenant)
LEFT JOIN LATERAL (
    SELECT true AS is_there FROM jobs
    WHERE (jobs.shard, jobs.tenant, jobs.id) BETWEEN (:shard, asked.tenant, '00000000-0000-0000-0000-000000000000'::uuid)
                                                 AND (:shard, asked.tenant, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
    LIMIT 1
) AS of_jobs ON true
LEFT JOIN LATERAL (
    SELECT true AS is_there FROM schedules WHERE schedules.shard = :shard AND schedules.tenant = asked.tenant LIMIT 1
) AS of_schedules ON true
WHERE of_jobs.is_there OR of_schedules.is_there

-- name: shards_with_held
SELECT DISTINCT shard FROM held_jobs WHERE shard = ANY(:shards::int[]) AND told IS NULL

-- name: tenants_with_held
SELECT DISTINCT tenant FROM held_jobs WHERE shard = :shard AND tenant > :after AND told IS NULL ORDER BY tenant LIMIT :limit

-- name: held_of
-- The oldest that wait and may be sent to this region: no other was sent them, nor this one under an older home, for then
-- they may have left it again. So many, or as many as are not too heavy: a row is a whole call. (How long a text is stands
-- with its place, so none is read for that.)
SELECT page.id::text AS id, page.kind, page.job_count, page.body, page.offered_to, page.offered_under FROM (
    SELECT found.*, sum(octet_length(found.body)) OVER (
        ORDER BY found.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (
        SELECT id, kind, job_count, body, offered_to, offered_under FROM held_jobs
        WHERE shard = :shard AND tenant = :tenant AND id > :after::uuid AND told IS NULL
          AND (offered_to IS NULL OR (offered_to = :region AND offered_under = :under::bigint[]))
        ORDER BY held_jobs.id LIMIT :limit
    ) AS found
) AS page WHERE coalesce(page.bytes_before, 0) < :bytes_max::bigint ORDER BY page.id

-- name: doubtful_of
-- The oldest that were sent to another region, or under an older home: that region may have them, or have had them. Of those
-- that can be asked; it is asked by their ids alone.
SELECT id::text AS id, kind, job_count, ''::bytea AS body, offered_to, offered_under FROM held_jobs
WHERE shard = :shard AND tenant = :tenant AND told IS NULL AND offered_to IS NOT NULL AND offered_to <> ALL(:but::text[])
  AND (offered_under < :under::bigint[] OR (offered_under = :under::bigint[] AND offered_to <> :region))
ORDER BY id LIMIT :limit

-- name: offer_held
-- From here on that region may have them, whatever we hear. Not what another server sent elsewhere since we read it.
UPDATE held_jobs SET offered_to = :region, offered_under = :under::bigint[]
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[]) AND told IS NULL
  AND (offered_to IS NULL OR (offered_to = :region AND offered_under = :under::bigint[]))
RETURNING id::text AS id

-- name: withdraw_held
-- The region that was asked never had any of these, and takes nothing any more that was sent under that home. What another
-- server sent to it since under a newer one is not meant.
UPDATE held_jobs SET offered_to = NULL
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[]) AND told IS NULL
  AND offered_to = :region AND offered_under = :under::bigint[]

-- name: handed_over
-- The region that they were offered to, under that home, has them. What was offered to another since, or is here anew and
-- was offered to this one under a newer home, is its own to hand over.
DELETE FROM held_jobs
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[]) AND kind <> 1
  AND offered_to = :region AND offered_under = :under::bigint[]

-- name: left_for_good
-- So it is with jobs that were here before they left; that they were is not forgotten, for whoever sent them here may ask.
-- For so long from now on.
UPDATE held_jobs SET told = '""', body = '', accepted_at = now()
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[]) AND kind = 1 AND told IS NULL
  AND offered_to = :region AND offered_under = :under::bigint[]

-- name: tell_held
-- What became of a call, remembered for so long from now on.
UPDATE held_jobs SET told = :told, body = '', accepted_at = now()
WHERE shard = :shard AND tenant = :tenant AND id = :id::uuid
  AND offered_to = :region AND offered_under = :under::bigint[]

-- name: still_held
-- Whether any of these begins a call that waits here.
SELECT true AS is_held FROM held_jobs
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[]) AND told IS NULL LIMIT 1

-- name: arrived_jobs
-- These are among the jobs here, by way of the region that they were sent to, so they are settled: what may be here again
-- is not held. Not calls of several jobs: of the others nothing is known yet.
DELETE FROM held_jobs
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[]) AND kind < 2 AND job_count = 1 AND told IS NULL

-- name: pass_key_on
-- The Idempotency-Key of a job that turned out to be another is that one's here, too: it may come back with its tenant, and
-- would else be taken for the first, which is nowhere any more.
UPDATE idempotency SET job = :became::uuid WHERE shard = :shard AND tenant = :tenant AND key = :key AND job = :id::uuid

-- name: find_held
-- Calls that a job may have come with, if it is held here or what became of it is known: ids of calls that came at one moment
-- through several servers lie between each other. Of the nearest so many of its millisecond; what waits by itself has its id.
SELECT id::text AS id, kind, job_count, told, octet_length(body) AS bytes FROM (
    (SELECT * FROM held_jobs WHERE shard = :shard AND tenant = :tenant AND id BETWEEN :lowest::uuid AND :id::uuid
                               AND job_count > 1 ORDER BY id DESC LIMIT 32)
    UNION ALL
    (SELECT * FROM held_jobs WHERE shard = :shard AND tenant = :tenant AND id = :id::uuid AND job_count <= 1)
) AS near WHERE last_id >= :id::uuid ORDER BY id DESC

-- name: find_many_held
-- As `find_held`, for many jobs, of the calls that wait here.
SELECT asked.id::text AS job, near.id::text AS id, kind, job_count, told, octet_length(body) AS bytes
FROM unnest(:ids::uuid[], :lowest::uuid[]) AS asked(id, lowest)
CROSS JOIN LATERAL (
    (SELECT * FROM held_jobs WHERE shard = :shard AND tenant = :tenant AND held_jobs.id BETWEEN asked.lowest AND asked.id
                               AND job_count > 1 ORDER BY held_jobs.id DESC LIMIT 32)
    UNION ALL
    (SELECT * FROM held_jobs WHERE shard = :shard AND tenant = :tenant AND held_jobs.id = asked.id AND job_count <= 1)
) AS near WHERE last_id >= asked.id AND told IS NULL

-- name: body_of_held
-- Of one that waits, with all its jobs; it may be as large as a whole batch. A part of it may have its id by now.
SELECT body FROM held_jobs
WHERE shard = :shard AND tenant = :tenant AND id = :id::uuid AND job_count = :jobs AND told IS NULL

-- name: count_held
-- Jobs that wait here, by tenant and by the region that they were sent to, if any.
SELECT tenant, offered_to, sum(job_count)::bigint AS job_count, coalesce(sum(octet_length(body)), 0)::bigint AS bytes
FROM held_jobs WHERE shard = ANY(:shards::int[]) AND told IS NULL GROUP BY tenant, offered_to

-- name: forget_told
DELETE FROM held_jobs WHERE shard = ANY(:shards::int[]) AND told IS NOT NULL AND accepted_at < now() - make_interval(days => :days)

-- name: known_jobs
-- Which of these are in this store, as jobs, schedules or held, or were and left it; what is held and was offered to a region
-- that is named is not meant.
SELECT id::text AS id FROM jobs WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[])
UNION
SELECT made.id::text FROM schedules
CROSS JOIN LATERAL (SELECT md5(schedules.tenant::text || '/' || schedules.name)::uuid AS id) AS made
WHERE schedules.shard = :shard AND schedules.tenant = :tenant AND made.id = ANY(:ids::uuid[])
UNION
SELECT id::text FROM held_jobs
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[])
  AND (told IS NOT NULL OR :but_offered_to::text IS NULL OR offered_to IS DISTINCT FROM :but_offered_to::text)

-- name: insert_moved_jobs
-- As they stood in the store that they come from; the same ids again are the same jobs.
INSERT INTO jobs (shard, id, tenant, type, pool, priority, state, attempts, deliveries, timeout_ms, epoch, execute_at,
                  started_at, payload, error, lane, failures, history, not_after, on_late, billed_us, unbilled_us,
                  parent, tags, metadata, limits, events, trace)
SELECT :shard, new.id, new.tenant, new.type, new.pool, new.priority, new.state, new.attempts, new.deliveries, new.timeout_ms,
       new.epoch, new.execute_at, new.started_at, new.payload, new.error, new.lane, new.failures, new.history, new.not_after,
       new.on_late, new.billed_us, new.unbilled_us, new.parent, new.tags, new.metadata, new.limits, new.events, new.trace
FROM json_populate_recordset(NULL::jobs, :rows::text::json) AS new
WHERE new.tenant = :tenant
ON CONFLICT DO NOTHING

-- name: insert_moved_schedules
INSERT INTO schedules (shard, tenant, name, cron, every_ms, zone, type, pool, priority, timeout_ms, payload, tick_argument,
                       jitter_ms, starts_at, ends_at, overlap, catch_up, window_ms, paused, source, handled_at, next_at,
                       waiting_tick, created_at)
SELECT :shard, new.tenant, new.name, new.cron, new.every_ms, new.zone, new.type, new.pool, new.priority, new.timeout_ms,
       new.payload, new.tick_argument, new.jitter_ms, new.starts_at, new.ends_at, new.overlap, new.catch_up, new.window_ms,
       new.paused, new.source, new.handled_at, CASE WHEN new.next_at IS NOT NULL THEN now() END, new.waiting_tick, new.created_at
FROM json_populate_recordset(NULL::schedules, :rows::text::json) AS new
WHERE new.tenant = :tenant
ON CONFLICT DO NOTHING
