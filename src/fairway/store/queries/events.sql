-- name: add_events
INSERT INTO events (tenant, kind, subject, detail)
SELECT * FROM unnest(:tenants::int[], :kinds::text[], :subjects::text[], :details::text[])

-- name: list_events
-- A tenant's events, newest first. A filter that is NULL does not narrow.
SELECT id, at, kind, subject, detail FROM events
WHERE tenant = :tenant AND id < :before AND (:kind::text IS NULL OR kind = :kind::text)
ORDER BY id DESC LIMIT :limit

-- name: forget_events
-- Bounded: at most so many a round.
DELETE FROM events WHERE (tenant, id) IN (
    SELECT tenant, id FROM events WHERE at < :before ORDER BY at LIMIT :limit
)
