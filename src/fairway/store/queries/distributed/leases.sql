-- name: whose_sessions
-- Keys are with the coordinator.
WITH known AS MATERIALIZED (
    SELECT replace(session::text, '-', '') AS session, worker, tenant, opener FROM sessions
    WHERE shard = :shard AND session = ANY(:sessions::uuid[]) AND opener IS NOT NULL
)
SELECT session, worker, tenant, opener,
       coalesce((SELECT revoked_at IS NOT NULL OR expires_at <= now() FROM api_keys WHERE id = known.opener), false) AS is_revoked
FROM known
