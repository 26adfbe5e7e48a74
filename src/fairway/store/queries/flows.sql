-- name: read_members
-- Where these jobs stand, of those that are in a flow.
SELECT job.flows::text[], job.id::text AS id, job.tenant, job.state
FROM unnest(:shards::int[], :tenants::int[], :ids::uuid[]) AS asked (shard, tenant, id)
CROSS JOIN LATERAL (
    SELECT * FROM jobs
    WHERE shard = asked.shard AND tenant = asked.tenant AND id = asked.id AND jobs.flows IS NOT NULL OFFSET 0
) AS job

-- name: count_ends
-- The counters of several flows, each once, however many of its members ended.
UPDATE flows SET succeeded = flows.succeeded + more.succeeded, failed = flows.failed + more.failed,
                 cancelled = flows.cancelled + more.cancelled,
                 last_failed = coalesce(more.example, flows.last_failed),
                 finished_at = CASE WHEN NOT flows.is_open
                                     AND flows.members = flows.succeeded + more.succeeded + flows.failed + more.failed
                                                         + flows.cancelled + more.cancelled THEN now() END
FROM unnest(:tenants::int[], :ids::uuid[], :succeeded::int[], :failed::int[], :cancelled::int[], :examples::uuid[])
     AS more (tenant, id, succeeded, failed, cancelled, example)
WHERE (flows.shard, flows.tenant, flows.id) BETWEEN (:shard, more.tenant, more.id) AND (:shard, more.tenant, more.id)
RETURNING flows.id::text AS id, flows.tenant, flows.kind, flows.needs, flows.is_open, flows.members, flows.succeeded,
          flows.failed, flows.cancelled, flows.waiting::text[] AS waiting, flows.source::text AS source, flows.argument,
          flows.last_failed::text AS last_failed, flows.created_at, flows.finished_at

-- name: owe_ends
-- Ends of members that another transaction counts: this one has done enough.
UPDATE flows SET owed = flows.owed + more.cancelled, last_failed = coalesce(more.example, flows.last_failed)
FROM unnest(:tenants::int[], :ids::uuid[], :cancelled::int[], :examples::uuid[]) AS more (tenant, id, cancelled, example)
WHERE (flows.shard, flows.tenant, flows.id) BETWEEN (:shard, more.tenant, more.id) AND (:shard, more.tenant, more.id)

-- name: read_flow
SELECT id::text AS id, tenant, kind, needs, is_open, members, succeeded, failed, cancelled, waiting::text[] AS waiting,
       source::text AS source, argument, last_failed::text AS last_failed, created_at, finished_at
FROM flows WHERE shard = :shard AND tenant = :tenant AND id = :id::uuid

-- name: list_flows
-- A tenant's flows, the newest first, without the links between jobs: a flow has a hundred of those at most, so they are
-- read over. (`flows.id`, as the column: `id` alone would be the text, sorted in full.)
SELECT id::text AS id, tenant, kind, needs, is_open, members, succeeded, failed, cancelled, waiting::text[] AS waiting,
       source::text AS source, argument, last_failed::text AS last_failed, created_at, finished_at
FROM flows
WHERE shard = :shard AND tenant = :tenant AND id >= :since::uuid AND id < :before::uuid AND kind < 2
ORDER BY flows.id DESC LIMIT :limit

-- name: read_result
-- What a job handed on.
SELECT result FROM jobs WHERE shard = :shard AND tenant = :tenant AND id = :id::uuid

-- name: read_payloads
-- Of jobs that wait for others.
SELECT id::text AS id, payload FROM jobs WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[])

-- name: release
-- Jobs that waited for others come into the queue, once: they wait for nobody any more. (`state + 0`, so that they are
-- looked up by key.)
UPDATE jobs SET state = 1, payload = coalesce(free.payload, jobs.payload),
                execute_at = CASE WHEN jobs.not_after IS NOT NULL THEN now() END
FROM unnest(:tenants::int[], :ids::uuid[], :payloads::bytea[]) AS free (tenant, id, payload)
WHERE (jobs.shard, jobs.tenant, jobs.id) BETWEEN (:shard, free.tenant, free.id) AND (:shard, free.tenant, free.id)
  AND jobs.id = free.id AND jobs.state + 0 = 0 AND jobs.execute_at = '9999-01-01 00:00+00'
RETURNING jobs.tenant, jobs.pool, jobs.type, jobs.priority, jobs.lane, jobs.id::text AS id

-- name: give_up
-- Jobs that wait for what will never be are cancelled, and say why.
UPDATE jobs SET state = 5, finished_at = now(), error = gone.error
FROM unnest(:tenants::int[], :ids::uuid[], :errors::bytea[]) AS gone (tenant, id, error)
WHERE (jobs.shard, jobs.tenant, jobs.id) BETWEEN (:shard, gone.tenant, gone.id) AND (:shard, gone.tenant, gone.id)
  AND jobs.id = gone.id AND jobs.state + 0 = 0 AND jobs.execute_at = '9999-01-01 00:00+00'
RETURNING jobs.flows::text[], jobs.id::text AS id, jobs.tenant

-- name: lock_needed
-- Jobs that another is to wait for: nobody ends one of them meanwhile.
SELECT id::text AS id, state, coalesce(cardinality(jobs.flows), 0) AS counted_by FROM jobs
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[]) ORDER BY jobs.id FOR UPDATE

-- name: join_flow
UPDATE jobs SET flows = coalesce(jobs.flows, '{}') || :flow::uuid
WHERE shard = :shard AND tenant = :tenant AND id = ANY(:ids::uuid[])

-- name: add_flows
INSERT INTO flows (shard, tenant, id, kind, needs, is_open, members, succeeded, failed, cancelled, waiting, source,
                   argument)
SELECT :shard, :tenant, new.id, new.kind, new.needs, new.is_open, new.members, new.succeeded, new.failed, new.cancelled,
       new.waiting::uuid[], new.source, new.argument
FROM unnest(:ids::uuid[], :kinds::smallint[], :needs::smallint[], :opens::bool[], :members::int[], :succeeded::int[],
            :failed::int[], :cancelled::int[], :waiting::text[], :sources::uuid[], :arguments::text[])
     AS new (id, kind, needs, is_open, members, succeeded, failed, cancelled, waiting, source, argument)

-- name: lock_flow
SELECT members, is_open FROM flows WHERE shard = :shard AND tenant = :tenant AND id = :id::uuid FOR UPDATE

-- name: grow_flow
-- More members, and perhaps the last of them.
UPDATE flows SET members = :members, is_open = :is_open, finished_at = NULL
WHERE shard = :shard AND tenant = :tenant AND id = :id::uuid

-- name: close_flow
-- No members will come any more.
UPDATE flows SET is_open = false WHERE shard = :shard AND tenant = :tenant AND id = :id::uuid AND is_open

-- name: old_flows
-- Flows past their time, the oldest first. Not of tenants that move: who waits for one may be counted by another, which
-- is not found here any more.
SELECT tenant, id::text AS id, waiting::text[] AS waiting FROM flows
WHERE shard = :shard AND created_at < :since AND tenant <> ALL(:moving::int[]) ORDER BY created_at LIMIT :limit

-- name: forget_flows
DELETE FROM flows USING unnest(:tenants::int[], :ids::uuid[]) AS gone (tenant, id)
WHERE flows.shard = :shard AND flows.tenant = gone.tenant AND flows.id = gone.id
