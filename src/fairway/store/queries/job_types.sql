-- name: changed_types
-- What is new or different since a moment; the overlap makes up for late commits.
SELECT id, name, pool, timeout_ms, attempts_max, dependency, warm_key, version, schema,
       registered_at IS NOT NULL AS is_registered, measured_pool, measured_p95_ms, moved_at,
       shared, renounced_at, let_go_at IS NOT NULL AS is_let_go
FROM job_types WHERE updated_at > :since::timestamptz - interval '10 seconds'

-- name: register_type
-- What an operator puts is there, even if another took it back a moment ago.
UPDATE job_types SET pool = :pool, timeout_ms = :timeout_ms, attempts_max = :attempts_max,
                     dependency = :dependency, warm_key = :warm_key, version = :version,
                     schema = :schema, registered_at = coalesce(registered_at, now()), updated_at = clock_timestamp(),
                     by_hand = by_hand OR :by_hand, shared = shared OR :by_hand,
                     let_go_at = CASE WHEN :by_hand THEN NULL ELSE let_go_at END
WHERE id = :id

-- name: hold_type
-- Nobody names it from now on until the transaction ends, and who did is seen by what follows.
SELECT FROM job_types WHERE id = :id FOR UPDATE

-- name: take_back_type
-- What was said of a type, by hand or by workers, is not said any more, and it is not the house's: who names it from
-- now on is counted. Unless somebody's schedule or the like refers to it, it is let go at once. The row keeps the
-- number until every job from before this is gone.
UPDATE job_types AS types SET
    pool = NULL, timeout_ms = NULL, attempts_max = NULL, dependency = '', warm_key = '', version = '', schema = NULL,
    registered_at = NULL, measured_pool = NULL, measured_p95_ms = NULL, moved_at = NULL,
    by_hand = false, shared = false, said_at = clock_timestamp(), updated_at = clock_timestamp(),
    let_go_at = CASE WHEN EXISTS (SELECT FROM tenant_types AS n WHERE n.type = types.id AND n.let_go_at IS NULL)
                       OR EXISTS (SELECT FROM schedules AS s WHERE s.type = types.id)
                       OR EXISTS (SELECT FROM pauses AS p WHERE p.type = types.id)
                       OR EXISTS (SELECT FROM circuits AS c WHERE c.type = types.id)
                       OR EXISTS (SELECT FROM quarantines AS q WHERE q.type = types.id)
                       OR EXISTS (SELECT FROM bulk_actions AS a WHERE a.type = types.id)
                     THEN NULL ELSE now() END
WHERE id = :id AND by_hand
RETURNING id

-- name: move_type
-- The first to say so moves it; then it stays for a while, whatever other servers measured.
UPDATE job_types SET measured_pool = :pool, measured_p95_ms = :measured_ms, moved_at = now(), updated_at = now()
WHERE id = :id AND (moved_at IS NULL OR moved_at < now() - :sticky::interval)
RETURNING name
