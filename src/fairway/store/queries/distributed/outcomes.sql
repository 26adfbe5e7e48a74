-- Only the ends themselves: what is booked, noted and started beside them follows in the same transaction
-- (`bookings.sql`).

-- part: under_its_lease
-- Nodes plan each of them anew, for a day of which they may have no statistics yet. That a column is NULL they then take for
-- one row in two hundred, so few that they walk through the batch for every row of the table: half a second for 200 ends
-- among 6 000 jobs, where it takes 10 ms. Within a CASE it counts as one in two.
jobs.shard = ANY(:owned::int[]) AND jobs.shard = done.shard AND jobs.tenant = done.tenant AND jobs.id = done.id
AND jobs.id = done.id
AND CASE WHEN jobs.state = 1 THEN jobs.epoch < done.epoch WHEN jobs.state = 2 THEN jobs.epoch = done.epoch END
AND CASE WHEN jobs.flows IS NULL THEN true ELSE :in_flow::bool END

-- part: in_shards_held
done.shard = ANY (ARRAY(
    SELECT held.shard FROM unnest(:owned::int[], :terms::bigint[]) AS owned (shard, term)
    CROSS JOIN LATERAL (
        SELECT shards.shard FROM shards WHERE shard = ANY(:owned::int[]) AND shard = owned.shard AND term = owned.term FOR KEY SHARE
    ) AS held))

-- name: record_successes
UPDATE jobs SET state = 3, attempts = least(jobs.attempts + 1, 32767),
                deliveries = least(jobs.deliveries + 1, 32767),
                epoch = done.epoch, finished_at = now(), ran_us = done.ran_us,
                started_at = CASE WHEN jobs.state = 2 THEN jobs.started_at END,
                result = coalesce(done.result, 'null'), session = NULL, token = NULL,
                events = NOT jobs.events
FROM (SELECT unnest(:shards::text::int[]) AS shard, unnest(:tenants::text::int[]) AS tenant, unnest(:ids::text::uuid[]) AS id,
             unnest(:epochs::text::bigint[]) AS epoch, unnest(:rans_us::text::bigint[]) AS ran_us,
             unnest(:results::bytea[]) AS result) AS done
WHERE {under_its_lease}
  AND {in_shards_held}
RETURNING jobs.shard, jobs.tenant, jobs.id, jobs.pool, jobs.type, jobs.attempts, jobs.events, done.ran_us AS billed_us

-- name: record_parents
UPDATE jobs SET state = 3, attempts = least(jobs.attempts + 1, 32767),
                deliveries = least(jobs.deliveries + 1, 32767),
                epoch = done.epoch, finished_at = now(), ran_us = done.ran_us,
                started_at = CASE WHEN jobs.state = 2 THEN jobs.started_at END,
                result = coalesce(done.result, 'null'), session = NULL, token = NULL,
                children = done.children, children_ms = done.children_ms
FROM (SELECT unnest(:shards::int[]) AS shard, unnest(:tenants::int[]) AS tenant, unnest(:ids::uuid[]) AS id,
             unnest(:epochs::bigint[]) AS epoch, unnest(:rans_us::bigint[]) AS ran_us,
             unnest(:results::bytea[]) AS result, unnest(:children::int[]) AS children,
             unnest(:children_ms::bigint[]) AS children_ms) AS done
WHERE {under_its_lease}
  AND {in_shards_held}
RETURNING jobs.shard, jobs.tenant, jobs.id, jobs.pool, jobs.type, NULL::boolean AS events, done.ran_us AS billed_us

-- name: settle
UPDATE jobs SET state = done.state, attempts = done.attempts, deliveries = done.deliveries,
                epoch = done.epoch, execute_at = coalesce(done.execute_at, jobs.execute_at),
                finished_at = (SELECT now() WHERE done.state >= 3),
                started_at = CASE WHEN jobs.state = 2 THEN jobs.started_at END,
                ran_us = done.ran_us, error = coalesce(done.error, jobs.error),
                failures = (SELECT done.failures::smallint[]), fingerprint = done.fingerprint,
                history = coalesce(jobs.history[greatest(cardinality(jobs.history) - 48, 1):], '{}')
                          || done.entry,
                billed_us = least(coalesce(jobs.billed_us, 0)::numeric + done.billed_us,
                                  9223372036854775807)::bigint,
                unbilled_us = least(coalesce(jobs.unbilled_us, 0)::numeric + done.ran_us
                                    - done.billed_us, 9223372036854775807)::bigint,
                session = NULL, token = NULL
FROM unnest(:shards::int[], :tenants::int[], :ids::uuid[], :epochs::bigint[], :states::smallint[],
            :attempts::smallint[], :deliveries::smallint[], :execute_ats::timestamptz[],
            :rans_us::bigint[], :errors::bytea[], :failures::text[], :fingerprints::bigint[],
            :entries::bytea[], :billed_us::bigint[], :are_attempts::bool[],
            :ended_ats::timestamptz[])
     AS done (shard, tenant, id, epoch, state, attempts, deliveries, execute_at, ran_us, error, failures,
              fingerprint, entry, billed_us, is_attempt, ended_at)
WHERE {under_its_lease}
  AND {in_shards_held}
RETURNING NULL::boolean AS events, jobs.shard, jobs.tenant, jobs.pool, jobs.type, done.billed_us, done.ran_us - done.billed_us AS unbilled_us,
          done.state >= 3 AS is_end, done.is_attempt, (SELECT given.moment FROM (VALUES (1, done.ended_at), (2, now())) AS given (number, moment) WHERE given.moment IS NOT NULL ORDER BY given.number LIMIT 1) AS ended_at
