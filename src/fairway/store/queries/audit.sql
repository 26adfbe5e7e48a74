-- name: add_audit
INSERT INTO audit (actor, action, subject, detail) VALUES (:actor, :action, :subject, :detail)

-- name: list_audit
SELECT id, at, actor, action, subject, detail FROM audit WHERE id < :before ORDER BY id DESC LIMIT :limit

-- name: forget_audit
-- Bounded: at most so many a round.
DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < :before ORDER BY id LIMIT :limit)
