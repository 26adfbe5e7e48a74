-- What is written beside the ends of runs: on plain PostgreSQL by the same statement, here by others of one transaction. In
-- one statement, what the first part answers would be sent to every node, and a node that is away would stop all ends.

-- name: book_end
-- Of one shard, by values: rows that come from nowhere would be copied, and committed in two phases.
INSERT INTO usage_log (shard, tenant_ids, pool_ids, type_ids, billed_us, unbilled_us, are_ends, are_attempts, ended_ats)
VALUES (:shard, :tenants::int[], :pools::smallint[], :types::int[], :billed::bigint[], :unbilled::bigint[],
        :ends::boolean[], :attempts::boolean[], :ended::timestamptz[])

-- name: note_ends
INSERT INTO event_inbox (shard, tenant, kind, job, type, state, attempt, pool, ran_us)
SELECT ended.shard, ended.tenant, 'job.succeeded', ended.id, ended.type, 3, ended.attempt, ended.pool, ended.ran_us
FROM unnest(:shards::int[], :tenants::int[], :ids::uuid[], :types::int[], :attempts::smallint[], :pools::smallint[],
            :rans_us::bigint[])
     AS ended (shard, tenant, id, type, attempt, pool, ran_us)

-- name: start_children
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
WHERE new.parent = ANY (:ended::uuid[])
