-- name: add_mark
INSERT INTO marks (kind, text) VALUES (:mark_kind, :text) RETURNING at, kind, text

-- name: see_sources
-- What is seen for the first time leaves a mark, unless as many did in the last hour as may; what is known stays longer.
INSERT INTO marks (kind, text, source)
SELECT 'deploy', seen.text, seen.source
FROM unnest(:texts::text[], :sources::text[]) AS seen (text, source)
WHERE EXISTS (SELECT FROM marks AS known WHERE known.source = seen.source)
   OR :most::bigint > (SELECT count(*) FROM marks AS new WHERE new.source IS NOT NULL AND new.at > now() - interval '1 hour')
ON CONFLICT (source) WHERE source IS NOT NULL DO UPDATE SET seen_at = now()

-- name: list_marks
-- Of a span, the newest.
SELECT at, kind, text FROM marks WHERE at >= :since AND at < :before ORDER BY at DESC, id DESC LIMIT :limit

-- name: forget_marks
-- Those past their time, and of each kind those beyond so many of the newest; bounded.
DELETE FROM marks WHERE id IN (
    SELECT id FROM (
        SELECT id, seen_at, row_number() OVER (PARTITION BY kind ORDER BY id DESC) AS place FROM marks
    ) AS placed
    WHERE seen_at < :before OR place > :kept::bigint
    ORDER BY id LIMIT :limit
)
