-- name: add_audit
INSERT INTO audit (actor, actor_name, actor_kind, address, request_id, tenant, action, subject, detail, before, after)
VALUES (:actor, :actor_name, :actor_kind, :address, :request_id, :tenant, :action, :subject, :detail, :before, :after)

-- name: list_audit
-- A page of everybody's, newest first. A filter that is NULL does not narrow.
SELECT id, at, actor, actor_name, actor_kind, address, request_id, tenant, action, subject, detail, before, after
FROM audit
WHERE id < :below
  AND (:actor::text IS NULL OR actor = :actor OR actor_name = :actor)
  AND (:action::text IS NULL OR action = :action)
  AND (:subject::text IS NULL OR subject = :subject)
  AND (:since::timestamptz IS NULL OR at >= :since)
ORDER BY id DESC LIMIT :limit

-- name: audit_of
-- The same of what was done to one tenant's things. Of staff the tenant hears that it was staff: their names and
-- addresses are neither shown nor searched.
SELECT id, at, actor, actor_name, actor_kind, address, request_id, tenant, action, subject, detail, before, after
FROM (
    SELECT id, at, CASE WHEN actor_kind = 'tenant' THEN actor ELSE actor_kind END AS actor,
           CASE WHEN actor_kind = 'tenant' THEN actor_name ELSE '' END AS actor_name, actor_kind,
           CASE WHEN actor_kind = 'tenant' THEN address ELSE '' END AS address, request_id, tenant,
           action, subject, detail, before, after
    FROM audit WHERE tenant = :tenant AND id < :below
) AS shown
WHERE (:actor::text IS NULL OR actor = :actor OR actor_name = :actor)
  AND (:action::text IS NULL OR action = :action)
  AND (:subject::text IS NULL OR subject = :subject)
  AND (:since::timestamptz IS NULL OR at >= :since)
ORDER BY id DESC LIMIT :limit

-- name: forget_audit
-- Bounded: at most so many a round.
DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < :before ORDER BY id LIMIT :limit)

-- name: forget_floods
-- A tenant that wrote many of the newest lines keeps its newest; what it wrote before them goes, bounded.
DELETE FROM audit WHERE id IN (
    SELECT old.id FROM (
        SELECT lately.tenant FROM (
            SELECT tenant FROM audit WHERE actor_kind = 'tenant' ORDER BY id DESC LIMIT :among
        ) AS lately GROUP BY lately.tenant HAVING count(*) >= :kept::bigint / 10
    ) AS loud
    CROSS JOIN LATERAL (
        SELECT id FROM audit WHERE tenant = loud.tenant AND actor_kind = 'tenant'
        ORDER BY id DESC OFFSET :kept::bigint LIMIT :limit
    ) AS old
    LIMIT :limit
)
