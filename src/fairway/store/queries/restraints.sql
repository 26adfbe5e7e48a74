-- name: any_restraints
-- At most times there are none.
SELECT EXISTS (SELECT FROM circuits) AS circuits, EXISTS (SELECT FROM quarantines) AS quarantines

-- name: circuits_after
-- The next circuits that are not closed, and how long until their probes by the database's clock.
SELECT tenant, type, dependency, rest_us,
       greatest(extract(epoch FROM probe_at - now()) * 1e6, 0)::bigint AS probe_in_us, opened_at
FROM circuits
WHERE (tenant, type, dependency) > (:tenant, :type, :dependency)
ORDER BY tenant, type, dependency LIMIT :limit

-- name: circuits_of
-- A tenant's circuits that are not closed.
SELECT tenant, type, dependency, rest_us,
       greatest(extract(epoch FROM probe_at - now()) * 1e6, 0)::bigint AS probe_in_us, opened_at
FROM circuits WHERE tenant = :tenant ORDER BY type, dependency

-- name: parked_types
-- Types with circuits that are not closed, of each tenant the first few to be parked, the oldest of all first.
SELECT tenant, job_types.name AS type, parked.dependency, dependencies, types, rank
FROM (
    SELECT tenant, type, min(opened_at) AS since, min(dependency) AS dependency, count(*) AS dependencies,
           count(*) OVER (PARTITION BY tenant) AS types,
           row_number() OVER (PARTITION BY tenant ORDER BY min(opened_at), type) AS rank
    FROM circuits GROUP BY tenant, type
) AS parked
JOIN job_types ON job_types.id = parked.type
WHERE rank <= :per_tenant
ORDER BY since, tenant, parked.type LIMIT :limit

-- name: open_circuit
INSERT INTO circuits (tenant, type, dependency, rest_us, probe_at)
VALUES (:tenant, :type, :dependency, :rest_us, now() + :probe_in::interval)
ON CONFLICT (tenant, type, dependency)
DO UPDATE SET rest_us = excluded.rest_us, probe_at = excluded.probe_at

-- name: close_circuit
DELETE FROM circuits WHERE tenant = :tenant AND type = :type AND dependency = :dependency

-- name: quarantines_after
-- The next types in quarantine.
SELECT tenant, type, since FROM quarantines
WHERE (tenant, type) > (:tenant, :type)
ORDER BY tenant, type LIMIT :limit

-- name: quarantines_of
-- A tenant's types in quarantine.
SELECT type, since FROM quarantines WHERE tenant = :tenant ORDER BY type

-- name: impose_quarantine
INSERT INTO quarantines (tenant, type) VALUES (:tenant, :type) ON CONFLICT DO NOTHING

-- name: lift_quarantine
DELETE FROM quarantines WHERE tenant = :tenant AND type = :type
