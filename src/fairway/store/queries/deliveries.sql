-- name: hold_term
-- The owner's term, held until the transaction ends; nothing when another owns the shard.
SELECT now() AS now FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE

-- name: write_deliveries
-- Written before anything is sent. One that is there is sent again: somebody went back in the log.
INSERT INTO webhook_deliveries (shard, tenant, webhook, number, kind, body, state, next_at, trace)
SELECT :shard, :tenant, :webhook, made.number, made.kind, made.body, 0, now(), made.trace
FROM unnest(:numbers::bigint[], :kinds::text[], :bodies::bytea[], :traces::bytea[]) AS made (number, kind, body, trace)
ON CONFLICT (shard, tenant, webhook, number) DO UPDATE
    SET state = 0, attempts = 0, next_at = excluded.next_at

-- name: read_traces
-- Of those of these jobs that belong to a trace; one that is told of late may be gone by now.
SELECT job.id::text AS id, job.trace
FROM unnest(:tenants::int[], :ids::uuid[]) AS asked (tenant, id)
CROSS JOIN LATERAL (
    SELECT * FROM jobs WHERE shard = :shard AND tenant = asked.tenant AND id = asked.id OFFSET 0
) AS job
WHERE job.trace IS NOT NULL

-- name: count_waiting_tests
-- So many at most: more need not be known.
SELECT count(*) AS count FROM (
    SELECT FROM webhook_deliveries
    WHERE shard = :shard AND tenant = :tenant AND webhook = :webhook AND state = 0 AND number < 0 LIMIT :most
) AS waiting

-- name: count_waiting
-- So many at most: more need not be known.
SELECT count(*) AS count FROM (
    SELECT FROM webhook_deliveries
    WHERE shard = :shard AND tenant = :tenant AND webhook = :webhook AND state = 0 LIMIT :most
) AS waiting

-- name: due_deliveries
-- What is to be sent of each of these webhooks, so many of each.
SELECT asked.webhook, due.number, due.kind, due.body, due.attempts, due.trace
FROM unnest(:tenants::int[], :webhooks::uuid[], :eaches::int[]) AS asked (tenant, webhook, each)
CROSS JOIN LATERAL (
    SELECT number, kind, body, attempts, trace FROM webhook_deliveries
    WHERE shard = :shard AND tenant = asked.tenant AND webhook = asked.webhook AND state = 0 AND next_at <= now()
    ORDER BY next_at LIMIT asked.each
) AS due

-- name: record_calls
-- What calls came to.
UPDATE webhook_deliveries AS d SET
    state = call.state, attempts = least(d.attempts + 1, 32767)::smallint,
    next_at = now() + make_interval(secs => call.pause_seconds),
    last_at = now(), last_status = call.status, last_error = call.error
FROM unnest(:tenants::int[], :webhooks::uuid[], :numbers::bigint[], :states::smallint[],
            :pauses::float8[], :statuses::smallint[], :errors::text[], :tries::smallint[])
     AS call (tenant, webhook, number, state, pause_seconds, status, error, tries)
WHERE d.shard = :shard AND d.tenant = call.tenant AND d.webhook = call.webhook AND d.number = call.number
  AND (d.attempts = call.tries OR call.state = 1)  -- else it was replayed meanwhile, and has all its tries

-- name: delivered_since
-- The newest first: a receiver that does well is found out by one row, and not behind a week of older ones.
SELECT number FROM webhook_deliveries
WHERE shard = :shard AND tenant = :tenant AND webhook = :webhook AND state = 1 AND last_at >= :since
ORDER BY created_at DESC LIMIT 1

-- name: list_deliveries
-- The newest first. A state that is NULL does not narrow.
SELECT webhook::text AS webhook, number, kind, state, attempts, next_at, created_at, last_at, last_status, last_error,
       substring(body FROM 1 FOR :shown) AS body
FROM webhook_deliveries
WHERE shard = :shard AND tenant = :tenant AND webhook = :webhook
  AND (created_at, number) < (:before, :number)
  AND CASE WHEN :state::smallint IS NULL THEN true ELSE state = :state::smallint END
ORDER BY created_at DESC, number DESC LIMIT :limit

-- name: read_delivery
SELECT webhook::text AS webhook, number, kind, state, attempts, next_at, created_at, last_at, last_status, last_error,
       substring(body FROM 1 FOR :shown) AS body
FROM webhook_deliveries
WHERE shard = :shard AND tenant = :tenant AND webhook = :webhook AND number = :number

-- name: replay_delivery
UPDATE webhook_deliveries SET state = 0, attempts = 0, next_at = now()
WHERE shard = :shard AND tenant = :tenant AND webhook = :webhook AND number = :number
RETURNING number

-- name: replay_failed
-- Bounded: at most so many a call.
UPDATE webhook_deliveries AS d SET state = 0, attempts = 0, next_at = now()
FROM (
    SELECT number FROM webhook_deliveries
    WHERE shard = :shard AND tenant = :tenant AND webhook = :webhook AND created_at >= :since AND state = 2
    ORDER BY created_at LIMIT :limit
) AS failed
WHERE d.shard = :shard AND d.tenant = :tenant AND d.webhook = :webhook AND d.number = failed.number

-- name: trim_deliveries
-- Only so many of a webhook are kept, the newest; what still waits stays.
DELETE FROM webhook_deliveries
WHERE shard = :shard AND tenant = :tenant AND webhook = :webhook AND state <> 0 AND created_at < (
    SELECT created_at FROM webhook_deliveries WHERE shard = :shard AND tenant = :tenant AND webhook = :webhook
    ORDER BY created_at DESC, number DESC OFFSET :kept LIMIT 1
)

-- name: forget_deliveries
-- Bounded: at most so many a round.
DELETE FROM webhook_deliveries WHERE (shard, tenant, webhook, number) IN (
    SELECT shard, tenant, webhook, number FROM webhook_deliveries
    WHERE shard = :shard AND created_at < :before AND (state <> 0 OR next_at < :before) ORDER BY created_at LIMIT :limit
)
