-- part: under_its_lease
-- The row of an end, if the lease it was run under is the one in force: queued and older, or running and the same.
-- In every write of a batch, the key is compared as a whole, BETWEEN itself and itself: that leaves one
-- plan whatever the statistics, each item of the batch by its key. Equalities can be merged on, so with
-- them a walk over the whole table is a path too, and it looks free to whoever believes the table empty.
-- The id is said again to find the partition. (Reads use a sub-select for each item; decision 0021.)
-- A job that is in a flow is left alone unless its end is being counted (flows.sql).
(jobs.shard, jobs.tenant, jobs.id) BETWEEN (done.shard, done.tenant, done.id) AND (done.shard, done.tenant, done.id)
AND jobs.id = done.id
AND CASE jobs.state WHEN 1 THEN jobs.epoch < done.epoch WHEN 2 THEN jobs.epoch = done.epoch END
AND (:in_flow::bool OR jobs.flows IS NULL)

-- part: in_shards_held
-- Of the batch, what lies in shards whose term is in force: each is held until the transaction ends.
done.shard = ANY (ARRAY(
    SELECT held.shard FROM unnest(:owned::int[], :terms::bigint[]) AS owned (shard, term)
    CROSS JOIN LATERAL (
        SELECT shards.shard FROM shards WHERE shard = owned.shard AND term = owned.term FOR KEY SHARE
    ) AS held))

-- part: book_successes
-- What is written is booked by the same statement, as one row for all of a book: so each end of a run is billed
-- once, however often its batch is sent (decisions 0051, 0091).
INSERT INTO usage_log (shard, tenant_ids, pool_ids, type_ids, billed_us)
SELECT book_of(ended.shard), array_agg(ended.tenant), array_agg(ended.pool), array_agg(ended.type), array_agg(ended.ran_us)
FROM ended GROUP BY book_of(ended.shard)

-- part: note_successes
-- Ends that somebody wants to hear of are noted likewise: the mark is turned over, so that no trigger does it row by
-- row (decision 0048).
INSERT INTO event_inbox (shard, tenant, kind, job, type, state, attempt, pool, ran_us)
SELECT ended.shard, ended.tenant, 'job.succeeded', ended.id, ended.type, 3, ended.attempts, ended.pool, ended.ran_us
FROM ended WHERE ended.events IS NOT NULL

-- name: record_successes
-- The hot end of a job: one statement for a batch, guarded per row by the lease, once by the term.
-- Arrays side by side in a SELECT are taken apart as they are read; in FROM each is stored first.
-- Most jobs return nothing: their result, JSON's null, is not sent.
-- A run whose lease was never written has no beginning here but its end less what it took; one that stands in
-- the row is an earlier run's.
WITH ended AS (
    UPDATE jobs SET state = 3, attempts = least(jobs.attempts + 1, 32767),
                    deliveries = least(jobs.deliveries + 1, 32767),
                    epoch = done.epoch, finished_at = now(), ran_us = done.ran_us,
                    started_at = CASE jobs.state WHEN 2 THEN jobs.started_at END,
                    result = coalesce(done.result, 'null'), session = NULL, token = NULL,
                    events = NOT jobs.events
    FROM (SELECT unnest(:shards::text::int[]) AS shard, unnest(:tenants::text::int[]) AS tenant, unnest(:ids::text::uuid[]) AS id,
                 unnest(:epochs::text::bigint[]) AS epoch, unnest(:rans_us::text::bigint[]) AS ran_us,
                 unnest(:results::bytea[]) AS result) AS done
    WHERE {under_its_lease}
      AND {in_shards_held}
    RETURNING jobs.shard, jobs.tenant, jobs.id, jobs.pool, jobs.type, jobs.attempts, jobs.events, done.ran_us
), booked AS (
    {book_successes}
), noted AS (
    {note_successes}
)
SELECT count(*) AS touched FROM ended

-- name: record_successes_in_place
-- The same for rows whose place is known, from when they were read as queued: no walk down an index.
-- A row that was written since, be it its lease, has moved; record_successes finds it. (`state + 0`: `= 1`
-- alone would allow a walk over all that is queued. Likewise the shard: its place is all that finds a row.)
WITH ended AS (
    UPDATE jobs SET state = 3, attempts = least(jobs.attempts + 1, 32767),
                    deliveries = least(jobs.deliveries + 1, 32767),
                    epoch = done.epoch, finished_at = now(), ran_us = done.ran_us, started_at = NULL,
                    result = coalesce(done.result, 'null'), events = NOT jobs.events
    FROM (SELECT unnest(:shards::text::int[]) AS shard, unnest(:tenants::text::int[]) AS tenant, unnest(:ids::text::uuid[]) AS id,
                 unnest(:epochs::text::bigint[]) AS epoch, unnest(:rans_us::text::bigint[]) AS ran_us,
                 unnest(:results::bytea[]) AS result, unnest(:places::text::tid[]) AS place) AS done
    WHERE jobs.ctid = done.place
      AND jobs.shard + 0 = done.shard AND jobs.tenant = done.tenant AND jobs.id = done.id
      AND jobs.state + 0 = 1 AND jobs.epoch < done.epoch
      AND (:in_flow::bool OR jobs.flows IS NULL)
      AND {in_shards_held}
    RETURNING jobs.shard, jobs.tenant, jobs.id, jobs.pool, jobs.type, jobs.attempts, jobs.events, done.ran_us
), booked AS (
    {book_successes}
), noted AS (
    {note_successes}
)
SELECT count(*) AS touched FROM ended

-- name: record_parents
-- Successes that start jobs, and those jobs: one statement, so both are there or neither. A run whose lease was
-- lost ends nothing and starts nothing; sent again after a lost reply, it finds the end written and does neither.
WITH ended AS (
    UPDATE jobs SET state = 3, attempts = least(jobs.attempts + 1, 32767),
                    deliveries = least(jobs.deliveries + 1, 32767),
                    epoch = done.epoch, finished_at = now(), ran_us = done.ran_us,
                    started_at = CASE jobs.state WHEN 2 THEN jobs.started_at END,
                    result = coalesce(done.result, 'null'), session = NULL, token = NULL,
                    children = done.children, children_ms = done.children_ms
    FROM (SELECT unnest(:shards::int[]) AS shard, unnest(:tenants::int[]) AS tenant, unnest(:ids::uuid[]) AS id,
                 unnest(:epochs::bigint[]) AS epoch, unnest(:rans_us::bigint[]) AS ran_us,
                 unnest(:results::bytea[]) AS result, unnest(:children::int[]) AS children,
                 unnest(:children_ms::bigint[]) AS children_ms) AS done
    WHERE {under_its_lease}
      AND {in_shards_held}
    RETURNING jobs.shard, jobs.tenant, jobs.id, jobs.pool, jobs.type, done.ran_us
), booked AS (
    {book_successes}
), started AS (
    INSERT INTO jobs (events, shard, id, tenant, type, pool, priority, lane, state, timeout_ms, payload, execute_at,
                      not_after, on_late, parent, limits, tags, metadata, trace)
    SELECT new.events, new.shard, new.id, new.tenant, new.type, new.pool, new.priority, new.lane, new.state, new.timeout_ms,
           new.payload, new.execute_at, new.not_after, new.on_late, new.parent, new.limits, new.tags::text[],
           new.metadata, new.trace
    FROM unnest(:child_events::bool[], :child_shards::int[], :child_tenants::int[], :parents::uuid[], :child_ids::uuid[], :types::int[],
                :pools::smallint[], :priorities::smallint[], :lanes::smallint[], :child_states::smallint[], :timeouts_ms::int[],
                :payloads::bytea[], :execute_ats::timestamptz[], :not_afters::timestamptz[], :on_lates::smallint[],
                :child_limits::bytea[], :child_tags::text[], :child_metadata::bytea[], :child_traces::bytea[])
         AS new (events, shard, tenant, parent, id, type, pool, priority, lane, state, timeout_ms, payload, execute_at,
                 not_after, on_late, limits, tags, metadata, trace)
    WHERE new.parent = ANY (ARRAY(SELECT ended.id FROM ended))  -- no join, so there is one plan
)
SELECT ended.id::text AS id FROM ended

-- name: settle
-- Every other end of a run: retry, death, cancellation, hand-back, loss. The run joins the job's
-- history, of which the last fifty are kept. Sums stop at the largest number there is.
WITH ended AS (
    UPDATE jobs SET state = done.state, attempts = done.attempts, deliveries = done.deliveries,
                    epoch = done.epoch, execute_at = coalesce(done.execute_at, jobs.execute_at),
                    finished_at = CASE WHEN done.state >= 3 THEN now() END,
                    started_at = CASE jobs.state WHEN 2 THEN jobs.started_at END,
                    ran_us = done.ran_us, error = coalesce(done.error, jobs.error),
                    failures = done.failures::smallint[], fingerprint = done.fingerprint,
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
    RETURNING jobs.shard, jobs.tenant, jobs.pool, jobs.type, done.billed_us, done.ran_us - done.billed_us AS unbilled_us,
              done.state >= 3 AS is_end, done.is_attempt, coalesce(done.ended_at, now()) AS ended_at
), booked AS (
    INSERT INTO usage_log (shard, tenant_ids, pool_ids, type_ids, billed_us, unbilled_us, are_ends, are_attempts, ended_ats)
    SELECT book_of(ended.shard), array_agg(ended.tenant), array_agg(ended.pool), array_agg(ended.type), array_agg(ended.billed_us),
           array_agg(ended.unbilled_us), array_agg(ended.is_end), array_agg(ended.is_attempt), array_agg(ended.ended_at)
    FROM ended GROUP BY book_of(ended.shard)
)
SELECT count(*) AS touched FROM ended

-- name: end_refused
-- Jobs whose end cannot be recorded as it was reported: dead, with the store's reason, and nothing of
-- the run. As little as possible is written, so that it can be.
UPDATE jobs SET state = 4, epoch = done.epoch, finished_at = now(), error = done.error,
                fingerprint = done.fingerprint, session = NULL, token = NULL
FROM unnest(:shards::int[], :tenants::int[], :ids::uuid[], :epochs::bigint[], :errors::bytea[],
            :fingerprints::bigint[]) AS done (shard, tenant, id, epoch, error, fingerprint)
WHERE {under_its_lease}
  AND {in_shards_held}

-- name: read_ends
-- Which of these were recorded after all: asked only when a batch touched fewer rows than it named.
SELECT job.id::text AS id, job.state, job.epoch
FROM unnest(:shards::int[], :tenants::int[], :ids::uuid[]) AS asked (shard, tenant, id)
CROSS JOIN LATERAL (
    SELECT * FROM jobs WHERE shard = asked.shard AND tenant = asked.tenant AND id = asked.id OFFSET 0
) AS job

-- name: cancel_waiting
-- A job that does not run is cancelled at once; the row lock decides against a racing promotion.
UPDATE jobs SET state = 5, finished_at = now()
WHERE shard = :shard AND tenant = :tenant AND id = :id AND state IN (0, 1)
  AND (:in_flow::bool OR jobs.flows IS NULL)
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
RETURNING id

-- name: cancel_many
-- As cancel_waiting, for a batch of one tenant; those that do not wait any more are left alone.
UPDATE jobs SET state = 5, finished_at = now()
FROM unnest(:tenants::int[], :ids::uuid[]) AS asked (tenant, id)
WHERE (jobs.shard, jobs.tenant, jobs.id) BETWEEN (:shard, asked.tenant, asked.id) AND (:shard, asked.tenant, asked.id)
  AND jobs.id = asked.id
  AND jobs.state IN (0, 1)
  AND (:in_flow::bool OR jobs.flows IS NULL)
  AND EXISTS (SELECT FROM shards WHERE shard = :shard AND term = :term FOR KEY SHARE)
RETURNING jobs.id::text AS id
