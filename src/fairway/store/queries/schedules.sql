-- name: put_schedule
-- Make a schedule or replace it. Ticks up to now are settled: a change is never caught up with.
INSERT INTO schedules AS held (
    shard, tenant, name, cron, every_ms, zone, type, pool, priority, timeout_ms, payload,
    tick_argument, jitter_ms, starts_at, ends_at, overlap, catch_up, window_ms, paused, source,
    handled_at, next_at
) VALUES (
    :shard, :tenant, :name, :cron, :every_ms, :zone, :type, :pool, :priority, :timeout_ms, :payload,
    :tick_argument, :jitter_ms, :starts_at, :ends_at, :overlap, :catch_up, :window_ms, :paused,
    :source, :handled_at, :next_at
)
ON CONFLICT (shard, tenant, name) DO UPDATE SET
    cron = excluded.cron, every_ms = excluded.every_ms, zone = excluded.zone, type = excluded.type,
    pool = excluded.pool, priority = excluded.priority, timeout_ms = excluded.timeout_ms,
    payload = excluded.payload, tick_argument = excluded.tick_argument,
    jitter_ms = excluded.jitter_ms, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
    overlap = excluded.overlap, catch_up = excluded.catch_up, window_ms = excluded.window_ms,
    paused = excluded.paused, source = excluded.source, handled_at = excluded.handled_at,
    next_at = excluded.next_at, waiting_tick = NULL, updated_at = now()
RETURNING (xmax = 0) AS is_new

-- name: count_schedules
SELECT count(*) AS count FROM schedules WHERE shard = :shard AND tenant = :tenant AND name <> :name

-- name: read_schedule
SELECT * FROM schedules WHERE shard = :shard AND tenant = :tenant AND name = :name

-- name: list_schedules
-- A page by name. It ends early, with the schedule whose payload makes it so heavy (`PAGE_BYTES`).
SELECT * FROM (
    SELECT found.*, sum(octet_length(payload)) OVER (
        ORDER BY found.name ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (
        SELECT * FROM schedules WHERE shard = :shard AND tenant = :tenant AND name > :after
        ORDER BY name LIMIT :limit
    ) AS found
) AS page
WHERE coalesce(bytes_before, 0) < 4194304
ORDER BY name

-- name: pause_schedule
-- Paused, a schedule settles its ticks without runs; what was due meanwhile is not caught up with.
UPDATE schedules SET paused = :paused, handled_at = :handled_at, next_at = :next_at,
                     waiting_tick = NULL, updated_at = now()
WHERE shard = :shard AND tenant = :tenant AND name = :name
RETURNING name

-- name: delete_schedule
DELETE FROM schedules WHERE shard = :shard AND tenant = :tenant AND name = :name RETURNING name

-- name: delete_runs
DELETE FROM schedule_runs WHERE shard = :shard AND tenant = :tenant AND name = :name

-- name: hold_shard
-- The owner's term, held until the transaction ends; nothing when another owns the shard.
SELECT now() AS now FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE

-- name: due_schedules
-- Schedules with a tick that is due, each held until the transaction ends.
SELECT * FROM schedules WHERE shard = :shard AND NOT paused AND next_at <= now()
ORDER BY next_at LIMIT :limit FOR UPDATE

-- name: waiting_schedules
-- Schedules with a tick that waits for the run before it.
SELECT * FROM schedules WHERE shard = :shard AND waiting_tick IS NOT NULL AND NOT paused
  AND (tenant, name) > (:tenant, :after)
ORDER BY tenant, name LIMIT :limit FOR UPDATE

-- name: next_schedule
-- How long until the next tick, by the database's clock.
SELECT extract(epoch FROM next_at - now())::float8 AS seconds FROM schedules
WHERE shard = :shard AND NOT paused AND next_at IS NOT NULL ORDER BY next_at LIMIT 1

-- name: settle_schedules
UPDATE schedules SET handled_at = done.handled_at, next_at = done.next_at,
                     waiting_tick = done.waiting_tick,
                     last_job = coalesce(done.last_job, schedules.last_job)
FROM unnest(:tenants::int[], :names::text[], :handled_ats::timestamptz[], :next_ats::timestamptz[],
            :waiting_ticks::timestamptz[], :last_jobs::uuid[])
     AS done (tenant, name, handled_at, next_at, waiting_tick, last_job)
WHERE (schedules.shard, schedules.tenant, schedules.name)
      BETWEEN (:shard, done.tenant, done.name) AND (:shard, done.tenant, done.name)

-- name: claim_runs
-- Each tick once: rows come back for those that nobody has fired before.
INSERT INTO schedule_runs AS held (shard, tenant, name, tick, cause, outcome, job)
SELECT :shard, run.tenant, run.name, run.tick, run.cause, run.outcome, run.job
FROM unnest(:tenants::int[], :names::text[], :ticks::timestamptz[], :causes::smallint[],
            :outcomes::smallint[], :jobs::uuid[]) AS run (tenant, name, tick, cause, outcome, job)
ON CONFLICT (shard, tenant, name, tick) DO UPDATE
    SET cause = excluded.cause, outcome = excluded.outcome, job = excluded.job, recorded_at = now()
    WHERE held.job IS NULL
RETURNING job::text AS job

-- name: list_runs
-- The newest runs of one schedule, before a tick.
SELECT tick, cause, outcome, job::text AS job, recorded_at FROM schedule_runs
WHERE shard = :shard AND tenant = :tenant AND name = :name AND tick < :before
ORDER BY tick DESC LIMIT :limit

-- name: forget_runs
-- Bounded: at most so many a round.
DELETE FROM schedule_runs WHERE (shard, tenant, name, tick) IN (
    SELECT shard, tenant, name, tick FROM schedule_runs
    WHERE shard = :shard AND recorded_at < :before ORDER BY recorded_at LIMIT :limit
)
