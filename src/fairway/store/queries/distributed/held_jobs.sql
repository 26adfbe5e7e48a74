-- name: hold_jobs
-- Types and pools are with the coordinator; the keys of one shard alone are looked through.
WITH gone AS (
    DELETE FROM jobs
    USING unnest(:tenants::int[], :ids::uuid[]) AS asked (tenant, id)
    WHERE jobs.shard = :shard AND jobs.tenant = asked.tenant AND jobs.id = asked.id
      AND jobs.state IN (0, 1) AND jobs.flows IS NULL AND substring(jobs.payload FROM 1 FOR :mark_bytes) <> :mark
      AND NOT EXISTS (SELECT 1 FROM held_jobs AS waiting WHERE waiting.shard = :shard AND waiting.tenant = asked.tenant
                                                           AND waiting.id = asked.id AND waiting.told IS NULL)
      AND EXISTS (SELECT 1 FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
    RETURNING jobs.*
), keys AS MATERIALIZED (
    SELECT tenant, job, key, body_hash FROM idempotency
    WHERE shard = :shard AND tenant = ANY(:tenants::int[]) AND job = ANY(:ids::uuid[])
), held AS (
    INSERT INTO held_jobs (shard, tenant, id, last_id, kind, job_count, body)
    SELECT gone.shard, gone.tenant, gone.id, gone.id, 1, 1, convert_to(json_build_object(
        'row', row_to_json(gone), 'type', job_types.name, 'pool', pools.name,
        'key', keys.key, 'body_hash', encode(keys.body_hash, 'hex')
    )::text, 'UTF8')
    FROM gone
    JOIN job_types ON job_types.id = gone.type
    JOIN pools ON pools.number = gone.pool
    LEFT JOIN keys ON keys.tenant = gone.tenant AND keys.job = gone.id
    ON CONFLICT (shard, tenant, id) DO UPDATE
        SET last_id = excluded.last_id, kind = excluded.kind, job_count = excluded.job_count, body = excluded.body,
            accepted_at = excluded.accepted_at, offered_to = NULL, told = NULL
        WHERE held_jobs.told IS NOT NULL
    RETURNING held_jobs.id
)
SELECT gone.id::text AS id, held.id IS NOT NULL AS is_held FROM gone LEFT JOIN held ON held.id = gone.id

-- name: tenants_with_rows
SELECT asked.tenant FROM unnest(:tenants::int[]) AS asked (tenant)
CROSS JOIN LATERAL (SELECT 1 FROM jobs WHERE jobs.shard = :shard AND jobs.tenant = asked.tenant LIMIT 1) AS of_jobs
UNION
SELECT asked.tenant FROM unnest(:tenants::int[]) AS asked (tenant)
CROSS JOIN LATERAL (
    SELECT 1 FROM schedules WHERE schedules.shard = :shard AND schedules.tenant = asked.tenant LIMIT 1
) AS of_schedules
