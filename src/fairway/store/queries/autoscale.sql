-- name: autoscale_pools
-- One row for each pool that somebody said something about.
SELECT pool, mode, minimum_workers, maximum_workers, down_after_seconds, override_workers, override_until, override_by,
       round, wanted_workers, short_of, closed, leaving
FROM autoscale_pools ORDER BY pool

-- name: put_autoscale
-- What an operator says; whoever turns it off, or on, forgets what was decided.
INSERT INTO autoscale_pools (pool, mode, minimum_workers, maximum_workers, down_after_seconds)
VALUES (:pool, :mode, :minimum_workers, :maximum_workers, :down_after_seconds)
ON CONFLICT (pool) DO UPDATE
    SET mode = excluded.mode, minimum_workers = excluded.minimum_workers,
        maximum_workers = excluded.maximum_workers, down_after_seconds = excluded.down_after_seconds,
        round = autoscale_pools.round + 1,
        wanted_workers = CASE WHEN autoscale_pools.mode = excluded.mode THEN autoscale_pools.wanted_workers END,
        short_of = 0,
        closed = CASE WHEN autoscale_pools.mode = excluded.mode THEN autoscale_pools.closed ELSE '{}' END,
        leaving = CASE WHEN autoscale_pools.mode = excluded.mode THEN autoscale_pools.leaving ELSE '{}' END

-- name: put_override
UPDATE autoscale_pools
SET override_workers = :workers, override_until = :until, override_by = :by
WHERE pool = :pool

-- name: drop_override
UPDATE autoscale_pools SET override_workers = NULL, override_until = NULL, override_by = NULL
WHERE pool = :pool AND override_workers IS NOT NULL

-- name: put_decided
-- The state, if nobody changed it since it was read: of two servers that both believe they decide, one is heard.
UPDATE autoscale_pools
SET round = round + 1, wanted_workers = :wanted, short_of = :short_of, closed = :closed, leaving = :leaving
WHERE pool = :pool AND round = :round
RETURNING round

-- name: add_decision
INSERT INTO autoscale_decisions (pool, from_workers, to_workers, code, reason, dry_run, facts)
VALUES (:pool, :from_workers, :to_workers, :code, :reason, :dry_run, :facts::text::jsonb)

-- name: forget_decisions
-- The newest are kept.
DELETE FROM autoscale_decisions
WHERE id IN (SELECT id FROM autoscale_decisions ORDER BY id DESC OFFSET :kept::bigint LIMIT :limit)

-- name: autoscale_decisions
-- A page, newest first.
SELECT id, at, pool, from_workers, to_workers, code, reason, dry_run, facts::text AS facts
FROM autoscale_decisions
WHERE id < :below AND (:pool::text IS NULL OR pool = :pool)
ORDER BY id DESC LIMIT :limit
