-- name: take_back_type
-- Types are with the coordinator; what refers to them is asked of all nodes.
WITH used AS MATERIALIZED (
    SELECT type FROM schedules WHERE type = :id UNION SELECT type FROM bulk_actions WHERE type = :id
)
UPDATE job_types AS types SET
    pool = NULL, timeout_ms = NULL, attempts_max = NULL, dependency = '', warm_key = '', version = '', schema = NULL,
    registered_at = NULL, measured_pool = NULL, measured_p95_ms = NULL, moved_at = NULL,
    by_hand = false, shared = false, said_at = now(), updated_at = now(),
    let_go_at = (SELECT now() WHERE NOT EXISTS (SELECT 1 FROM tenant_types AS n WHERE n.type = types.id AND n.let_go_at IS NULL)
                   AND NOT EXISTS (SELECT 1 FROM used)
                   AND NOT EXISTS (SELECT 1 FROM pauses AS p WHERE p.type = types.id)
                   AND NOT EXISTS (SELECT 1 FROM circuits AS c WHERE c.type = types.id)
                   AND NOT EXISTS (SELECT 1 FROM quarantines AS q WHERE q.type = types.id))
WHERE id = :id AND by_hand
RETURNING id
