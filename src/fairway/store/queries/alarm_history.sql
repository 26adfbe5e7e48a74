-- name: open_alarms
-- Those that are raised, the oldest first.
SELECT id, name, severity, subject, text, value, threshold, raised_at, ended_at FROM alarm_history
WHERE ended_at IS NULL ORDER BY id LIMIT :limit

-- name: raise_alarms
-- One that is raised already is not raised again.
INSERT INTO alarm_history (name, severity, subject, text, value, threshold, raised_at)
SELECT name, severity, subject, text, value, threshold, raised_at
FROM unnest(:names::text[], :severities::text[], :subjects::text[], :texts::text[], :values::float8[],
            :thresholds::float8[], :moments::timestamptz[])
     AS raised (name, severity, subject, text, value, threshold, raised_at)
ON CONFLICT (name, subject) WHERE ended_at IS NULL DO NOTHING
RETURNING id, name, severity, subject, text, value, threshold, raised_at, ended_at

-- name: end_alarms
UPDATE alarm_history SET ended_at = greatest(:moment::timestamptz, raised_at)
WHERE id = ANY(:ids::bigint[]) AND ended_at IS NULL
RETURNING id, name, severity, subject, text, value, threshold, raised_at, ended_at

-- name: list_alarms
-- A page, newest first.
SELECT id, name, severity, subject, text, value, threshold, raised_at, ended_at FROM alarm_history
WHERE id < :below ORDER BY id DESC LIMIT :limit

-- name: incidents
-- Critical alarms that were raised within a span, or before it and not over then; the newest.
SELECT id, name, severity, subject, text, value, threshold, raised_at, ended_at FROM alarm_history
WHERE severity = 'critical' AND raised_at < :before AND coalesce(ended_at, 'infinity') >= :since
ORDER BY raised_at DESC LIMIT :limit

-- name: forget_alarms
-- What was over long ago, and beyond so many of the newest; bounded.
DELETE FROM alarm_history WHERE id IN (
    SELECT id FROM alarm_history
    WHERE ended_at IS NOT NULL
      AND (ended_at < :before OR id <= (SELECT id FROM alarm_history ORDER BY id DESC OFFSET :kept::bigint LIMIT 1))
    ORDER BY id LIMIT :limit
)
