-- name: write_minute
-- What one server counted in a minute, and the same added to its hour: one statement, so a minute is in both or in neither;
-- one that is there already (a reply was lost) is added to nothing.
WITH told AS (
    SELECT line.* FROM unnest(
        :kinds::smallint[], :tenants::int[], :names::text[], :accepted::bigint[], :started::bigint[], :succeeded::bigint[],
        :failed::bigint[], :retried::bigint[], :dead::bigint[], :queued::bigint[], :running::bigint[], :slots::bigint[],
        :oldest_ms::bigint[], :pickups::text[], :runs::text[]
    ) AS line (kind, tenant, name, accepted, started, succeeded, failed, retried, dead, queued, running, slots,
               oldest_ms, pickup, run)
), fresh AS (
    INSERT INTO insight_minutes (kind, tenant, name, at, server, accepted, started, succeeded, failed, retried, dead,
                                 queued, running, slots, oldest_ms, pickup, run)
    SELECT told.kind, told.tenant, told.name, :at::timestamptz, :server::text, told.accepted, told.started,
           told.succeeded, told.failed, told.retried, told.dead, told.queued, told.running, told.slots, told.oldest_ms,
           told.pickup::int[], told.run::int[]
    FROM told
    ON CONFLICT DO NOTHING
    RETURNING *
)
INSERT INTO insight_hours AS mine (kind, tenant, name, at, server, minutes, accepted, started, succeeded, failed,
                                   retried, dead, queued, running, slots, oldest_ms, pickup, run)
SELECT fresh.kind, fresh.tenant, fresh.name, date_trunc('hour', fresh.at, 'UTC'), fresh.server,
       1::bigint << extract(minute FROM fresh.at AT TIME ZONE 'UTC')::int, fresh.accepted, fresh.started,
       fresh.succeeded, fresh.failed, fresh.retried, fresh.dead, fresh.queued, fresh.running, fresh.slots,
       fresh.oldest_ms, fresh.pickup, fresh.run
FROM fresh
ON CONFLICT (kind, tenant, name, at, server) DO UPDATE SET
    minutes = mine.minutes | excluded.minutes,
    accepted = mine.accepted + excluded.accepted, started = mine.started + excluded.started,
    succeeded = mine.succeeded + excluded.succeeded, failed = mine.failed + excluded.failed,
    retried = mine.retried + excluded.retried, dead = mine.dead + excluded.dead,
    queued = coalesce(mine.queued + excluded.queued, mine.queued, excluded.queued),
    running = coalesce(mine.running + excluded.running, mine.running, excluded.running),
    slots = coalesce(mine.slots + excluded.slots, mine.slots, excluded.slots),
    oldest_ms = greatest(mine.oldest_ms, excluded.oldest_ms),
    pickup = ARRAY(SELECT coalesce(a, 0) + coalesce(b, 0)
                   FROM unnest(mine.pickup, excluded.pickup) WITH ORDINALITY AS both_of (a, b, place) ORDER BY place),
    run = ARRAY(SELECT coalesce(a, 0) + coalesce(b, 0)
                FROM unnest(mine.run, excluded.run) WITH ORDINALITY AS both_of (a, b, place) ORDER BY place)

-- name: read_minutes
-- What every server wrote of one thing, by the minute.
SELECT extract(epoch FROM at)::bigint AS at, 1::bigint << extract(minute FROM at AT TIME ZONE 'UTC')::int AS minutes,
       accepted, started, succeeded, failed, retried, dead, queued, running, slots, oldest_ms, pickup, run
FROM insight_minutes
WHERE kind = :line_kind AND tenant = :tenant AND name = :name AND at >= :since AND at < :before

-- name: read_hours
-- The same, by the hour.
SELECT extract(epoch FROM at)::bigint AS at, minutes, accepted, started, succeeded, failed, retried, dead, queued,
       running, slots, oldest_ms, pickup, run
FROM insight_hours
WHERE kind = :line_kind AND tenant = :tenant AND name = :name AND at >= :since AND at < :before

-- name: forget_minutes
-- Minutes past their time, whichever server wrote them.
DELETE FROM insight_minutes WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM insight_minutes WHERE at < :before ORDER BY at LIMIT :limit
))

-- name: forget_hours
-- Hours past their time.
DELETE FROM insight_hours WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM insight_hours WHERE at < :before ORDER BY at LIMIT :limit
))
