-- name: all_circuits
-- Every circuit that is not closed, and how long until its next probes by the database's clock.
SELECT tenant, type, dependency, rest_us,
       greatest(extract(epoch FROM probe_at - now()) * 1e6, 0)::bigint AS probe_in_us, opened_at
FROM circuits

-- name: open_circuit
INSERT INTO circuits (tenant, type, dependency, rest_us, probe_at)
VALUES (:tenant, :type, :dependency, :rest_us, now() + :probe_in::interval)
ON CONFLICT (tenant, type, dependency)
DO UPDATE SET rest_us = excluded.rest_us, probe_at = excluded.probe_at

-- name: close_circuit
DELETE FROM circuits WHERE tenant = :tenant AND type = :type AND dependency = :dependency

-- name: all_quarantines
SELECT tenant, type, since FROM quarantines

-- name: impose_quarantine
INSERT INTO quarantines (tenant, type) VALUES (:tenant, :type) ON CONFLICT DO NOTHING

-- name: lift_quarantine
DELETE FROM quarantines WHERE tenant = :tenant AND type = :type
