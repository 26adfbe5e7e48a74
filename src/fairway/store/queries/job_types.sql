-- name: changed_types
-- What is new or different since a moment; the overlap makes up for late commits.
SELECT id, name, pool, timeout_ms, attempts_max, dependency, warm_key, version, schema,
       registered_at IS NOT NULL AS is_registered, measured_pool, measured_p95_ms, moved_at,
       shared, renounced_at, let_go_at IS NOT NULL AS is_let_go
FROM job_types WHERE updated_at > :since::timestamptz - interval '10 seconds'

-- name: register_type
UPDATE job_types SET pool = :pool, timeout_ms = :timeout_ms, attempts_max = :attempts_max,
                     dependency = :dependency, warm_key = :warm_key, version = :version,
                     schema = :schema, registered_at = coalesce(registered_at, now()), updated_at = now(),
                     by_hand = by_hand OR :by_hand
WHERE id = :id

-- name: move_type
-- The first to say so moves it; then it stays for a while, whatever other servers measured.
UPDATE job_types SET measured_pool = :pool, measured_p95_ms = :measured_ms, moved_at = now(), updated_at = now()
WHERE id = :id AND (moved_at IS NULL OR moved_at < now() - :sticky::interval)
RETURNING name
