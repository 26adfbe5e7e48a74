-- name: insert_job
-- One job that came alone: one round trip less than COPY.
INSERT INTO jobs (shard, id, tenant, type, pool, priority, lane, state, timeout_ms, payload)
VALUES (:shard, :id::uuid, :tenant, :type, :pool, :priority, :lane, :state, :timeout_ms, :payload)

-- name: insert_jobs
-- A few jobs that came together.
INSERT INTO jobs (shard, id, tenant, type, pool, priority, lane, state, timeout_ms, payload)
SELECT new.shard, new.id, new.tenant, new.type, new.pool, new.priority, new.lane, :state, new.timeout_ms, new.payload
FROM unnest(:shards::text::int[], :ids::text::uuid[], :tenants::text::int[], :types::text::int[], :pools::text::smallint[],
            :priorities::text::smallint[], :lanes::text::smallint[], :timeouts_ms::text::int[], :payloads::bytea[])
     AS new (shard, id, tenant, type, pool, priority, lane, timeout_ms, payload)

-- name: insert_traced_jobs
-- The same for jobs of which some belong to a trace: the others do not pay for it.
INSERT INTO jobs (shard, id, tenant, type, pool, priority, lane, state, timeout_ms, payload, trace)
SELECT new.shard, new.id, new.tenant, new.type, new.pool, new.priority, new.lane, :state, new.timeout_ms, new.payload, new.trace
FROM unnest(:shards::text::int[], :ids::text::uuid[], :tenants::text::int[], :types::text::int[], :pools::text::smallint[],
            :priorities::text::smallint[], :lanes::text::smallint[], :timeouts_ms::text::int[], :payloads::bytea[], :traces::bytea[])
     AS new (shard, id, tenant, type, pool, priority, lane, timeout_ms, payload, trace)

-- name: insert_marked_jobs
-- Jobs of which somebody wants to hear of some, and that those were accepted. Their mark is false, which says that it is
-- noted here: a trigger would do that row by row, at twice the price of the job.
WITH new AS MATERIALIZED (
    SELECT unnest(:shards::text::int[]) AS shard, unnest(:ids::text::uuid[]) AS id, unnest(:tenants::text::int[]) AS tenant, unnest(:types::text::int[]) AS type,
           unnest(:pools::text::smallint[]) AS pool, unnest(:priorities::text::smallint[]) AS priority,
           unnest(:lanes::text::smallint[]) AS lane, unnest(:timeouts_ms::text::int[]) AS timeout_ms,
           unnest(:payloads::bytea[]) AS payload, unnest(:marks::text::bool[]) AS events, unnest(:traces::bytea[]) AS trace
), written AS (
    INSERT INTO jobs (shard, id, tenant, type, pool, priority, lane, state, timeout_ms, payload, events, trace)
    SELECT new.shard, new.id, new.tenant, new.type, new.pool, new.priority, new.lane, :state, new.timeout_ms, new.payload,
           new.events, new.trace
    FROM new
)
INSERT INTO event_inbox (shard, tenant, kind, job, type, state, attempt, pool)
SELECT new.shard, new.tenant, 'job.accepted', new.id, new.type, :state, 0, new.pool FROM new WHERE new.events IS NOT NULL

-- name: claim_and_insert
-- A few jobs with keys, in one round trip: each (tenant, key) that is free or past its day is taken, and those jobs
-- are written that have taken theirs or have none; several may stand behind one key. Rows come back only for keys taken.
WITH claimed AS (
    INSERT INTO idempotency AS held (shard, tenant, key, body_hash, job, expires_at)
    SELECT wanted.shard, wanted.tenant, wanted.key, wanted.body_hash, wanted.job, now() + :keep::interval
    FROM unnest(:key_shards::int[], :key_tenants::int[], :keys::text[], :body_hashes::bytea[], :jobs::uuid[])
         AS wanted (shard, tenant, key, body_hash, job)
    ON CONFLICT (shard, tenant, key) DO UPDATE
        SET body_hash = excluded.body_hash, job = excluded.job, expires_at = excluded.expires_at
        WHERE held.expires_at < now()
    RETURNING tenant, key, job
), written AS (
    INSERT INTO jobs (shard, id, tenant, type, pool, priority, lane, state, timeout_ms, payload)
    SELECT new.shard, new.id, new.tenant, new.type, new.pool, new.priority, new.lane, :state, new.timeout_ms, new.payload
    FROM unnest(:shards::text::int[], :ids::text::uuid[], :tenants::text::int[], :types::text::int[], :pools::text::smallint[],
                :priorities::text::smallint[], :lanes::text::smallint[], :timeouts_ms::text::int[], :payloads::bytea[],
                :claimed_by::text::uuid[])
         AS new (shard, id, tenant, type, pool, priority, lane, timeout_ms, payload, claimed_by)
    WHERE new.claimed_by IS NULL OR new.claimed_by IN (SELECT claimed.job FROM claimed)
)
SELECT tenant, key FROM claimed

-- name: claim_and_insert_traced
-- The same for jobs of which some belong to a trace.
WITH claimed AS (
    INSERT INTO idempotency AS held (shard, tenant, key, body_hash, job, expires_at)
    SELECT wanted.shard, wanted.tenant, wanted.key, wanted.body_hash, wanted.job, now() + :keep::interval
    FROM unnest(:key_shards::int[], :key_tenants::int[], :keys::text[], :body_hashes::bytea[], :jobs::uuid[])
         AS wanted (shard, tenant, key, body_hash, job)
    ON CONFLICT (shard, tenant, key) DO UPDATE
        SET body_hash = excluded.body_hash, job = excluded.job, expires_at = excluded.expires_at
        WHERE held.expires_at < now()
    RETURNING tenant, key, job
), written AS (
    INSERT INTO jobs (shard, id, tenant, type, pool, priority, lane, state, timeout_ms, payload, trace)
    SELECT new.shard, new.id, new.tenant, new.type, new.pool, new.priority, new.lane, :state, new.timeout_ms, new.payload, new.trace
    FROM unnest(:shards::text::int[], :ids::text::uuid[], :tenants::text::int[], :types::text::int[], :pools::text::smallint[],
                :priorities::text::smallint[], :lanes::text::smallint[], :timeouts_ms::text::int[], :payloads::bytea[],
                :traces::bytea[], :claimed_by::text::uuid[])
         AS new (shard, id, tenant, type, pool, priority, lane, timeout_ms, payload, trace, claimed_by)
    WHERE new.claimed_by IS NULL OR new.claimed_by IN (SELECT claimed.job FROM claimed)
)
SELECT tenant, key FROM claimed

-- name: insert_nothing
-- What a submission needs of the table and not a row of it: the lock, and a store that takes writes.
INSERT INTO jobs SELECT * FROM jobs WHERE shard = :shard AND false

-- name: claim_keys
-- Take each (tenant, key) that is free or past its day. Rows come back only for those taken.
INSERT INTO idempotency AS held (shard, tenant, key, body_hash, job, expires_at)
SELECT wanted.shard, wanted.tenant, wanted.key, wanted.body_hash, wanted.job, now() + :keep::interval
FROM unnest(:key_shards::int[], :key_tenants::int[], :keys::text[], :body_hashes::bytea[], :jobs::uuid[])
     AS wanted (shard, tenant, key, body_hash, job)
ON CONFLICT (shard, tenant, key) DO UPDATE
    SET body_hash = excluded.body_hash, job = excluded.job, expires_at = excluded.expires_at
    WHERE held.expires_at < now()
RETURNING tenant, key

-- name: read_keys
-- Who holds the keys that could not be taken.
SELECT held.tenant, held.key, held.body_hash, held.job::text AS job
FROM unnest(:shards::int[], :tenants::int[], :keys::text[]) AS wanted (shard, tenant, key)
JOIN idempotency AS held
  ON held.shard = wanted.shard AND held.tenant = wanted.tenant AND held.key = wanted.key

-- name: release_keys
-- Keys of jobs that are not written after all: whoever sends the same again is judged anew.
DELETE FROM idempotency AS held
USING unnest(:tenants::int[], :keys::text[], :jobs::uuid[]) AS wanted (tenant, key, job)
WHERE (held.shard, held.tenant, held.key) BETWEEN (:shard, wanted.tenant, wanted.key) AND (:shard, wanted.tenant, wanted.key)
  AND held.job = wanted.job

-- name: forget_keys
-- Bounded: at most so many a round. A key that is taken anew meanwhile is asked again, and stays.
DELETE FROM idempotency
WHERE shard = :shard AND expires_at < now() AND ctid = ANY(ARRAY(
    SELECT ctid FROM idempotency
    WHERE shard = :shard AND expires_at < now() ORDER BY expires_at LIMIT :limit
))
