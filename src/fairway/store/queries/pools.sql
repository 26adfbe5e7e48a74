-- name: all_pools
SELECT number, name, lease_mode, lease_seconds, slots_default, run_mode, checkpoint, attempts_max,
       pickup_target_seconds, estimate_seconds, fits_seconds, overrun_seconds, labels, reserved_share
FROM pools ORDER BY number

-- name: put_pool
-- A pool keeps its number for ever: jobs carry it.
INSERT INTO pools (number, name, lease_mode, lease_seconds, slots_default, run_mode, checkpoint, attempts_max,
                   pickup_target_seconds, estimate_seconds, labels, reserved_share)
SELECT coalesce((SELECT number FROM pools WHERE name = :name), (SELECT max(number) + 1 FROM pools)),
       :name, :lease_mode, :lease_seconds, :slots_default, :run_mode, :checkpoint, :attempts_max,
       :pickup_target_seconds, :estimate_seconds, :labels, :reserved_share
ON CONFLICT (number) DO UPDATE
    SET lease_mode = excluded.lease_mode, lease_seconds = excluded.lease_seconds,
        slots_default = excluded.slots_default, run_mode = excluded.run_mode, checkpoint = excluded.checkpoint,
        attempts_max = excluded.attempts_max, pickup_target_seconds = excluded.pickup_target_seconds,
        estimate_seconds = excluded.estimate_seconds, labels = excluded.labels, reserved_share = excluded.reserved_share
    WHERE pools.name = excluded.name
RETURNING number
