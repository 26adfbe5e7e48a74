-- name: whose_sessions
-- Keys, and what servers wrote, are with the coordinator.
WITH by_shard AS MATERIALIZED (
    SELECT session, worker, tenant, opener, seen_at FROM sessions
    WHERE shard = :shard AND session = ANY(:sessions::uuid[]) AND opener IS NOT NULL
)
SELECT DISTINCT ON (found.session) replace(found.session::text, '-', '') AS session, found.worker, found.tenant, found.opener,
       coalesce((SELECT revoked_at IS NOT NULL OR expires_at <= now() FROM api_keys WHERE id = found.opener), false) AS is_revoked
FROM (
    SELECT session, worker, tenant, opener, seen_at FROM worker_sessions
    WHERE session = ANY(:sessions::uuid[]) AND opener IS NOT NULL
    UNION ALL
    SELECT session, worker, tenant, opener, seen_at FROM by_shard
) AS found
ORDER BY found.session, found.seen_at DESC
