-- name: all_names
-- Those in use.
SELECT id, name, shared FROM job_types WHERE let_go_at IS NULL ORDER BY id

-- name: all_namers
-- Which tenants have named which of them.
SELECT types.name, named.tenant, named.by_worker
FROM tenant_types AS named JOIN job_types AS types ON types.id = named.type
WHERE named.let_go_at IS NULL AND types.let_go_at IS NULL

-- name: read_names
-- Also those that were let go: a job may have come just then.
SELECT id, name, shared, NULL::boolean AS by_worker, let_go_at IS NOT NULL AS is_let_go
FROM job_types WHERE name = ANY(:names::text[])

-- name: names_of
-- Also of those that were let go: a job may have come just then.
SELECT id, name FROM job_types WHERE id = ANY(:ids::int[])

-- name: take_turns
-- Who counts names and adds some is alone with this tenant's, until the transaction ends. A lock on its row, not an
-- advisory one: those can be taken by any login of the database.
SELECT id FROM tenants WHERE id = :tenant FOR NO KEY UPDATE

-- name: take_turns_of_house
SELECT one FROM cluster FOR NO KEY UPDATE

-- name: names_for
-- What there is of these names, and whether this tenant has named them: not (NULL), with a job, or with its own worker.
SELECT types.id, types.name, types.shared, named.by_worker
FROM job_types AS types
LEFT JOIN tenant_types AS named ON named.tenant = :tenant AND named.type = types.id AND named.let_go_at IS NULL
WHERE types.name = ANY(:names::text[]) AND types.let_go_at IS NULL

-- name: count_shared
SELECT count(*) AS names FROM job_types WHERE shared

-- name: count_of_tenant
-- Those that the house has not said, too: of its jobs, or of its own workers.
SELECT count(*) AS names
FROM tenant_types AS named JOIN job_types AS types ON types.id = named.type
WHERE named.tenant = :tenant AND named.by_worker = :by_worker AND named.let_go_at IS NULL AND NOT types.shared

-- name: name_for_all
-- Dated when it is written: whoever names had to wait for its turn.
INSERT INTO job_types (name, shared, updated_at) SELECT unnest(:names::text[]), true, clock_timestamp()
ON CONFLICT (name) DO UPDATE SET shared = true, said_at = now(), let_go_at = NULL, updated_at = clock_timestamp()
RETURNING id, name

-- name: name_for_tenant
-- One that was let go is in use again, with the number it had. Nothing but a job of a tenant that is counted here
-- can have that number, so nobody need wait until all jobs of today have gone.
WITH brought AS (
    INSERT INTO job_types (name, said_at, updated_at) SELECT unnest(:names::text[]), '-infinity', clock_timestamp()
    ON CONFLICT (name) DO UPDATE SET let_go_at = NULL, updated_at = CASE
        WHEN job_types.let_go_at IS NULL THEN job_types.updated_at ELSE clock_timestamp() END
    RETURNING id, name
), named AS (
    INSERT INTO tenant_types (tenant, type, by_worker) SELECT :tenant::int, id, :by_worker::boolean FROM brought
    ON CONFLICT (tenant, type) DO UPDATE SET
        by_worker = tenant_types.by_worker OR excluded.by_worker, named_at = now(), let_go_at = NULL
)
SELECT id, name FROM brought

-- name: renew_shared
-- Shared workers are there that run them.
UPDATE job_types SET said_at = now()
WHERE id = ANY(:types::int[]) AND shared AND said_at < now() - interval '1 hour'

-- name: renew_own
-- Tenants' own workers are there that run them. One that came back just before its name was let go has it again.
-- A row that somebody holds is being named or renewed, and nobody waits for it: two that hold some and want others would.
WITH free AS MATERIALIZED (
    SELECT named.tenant, named.type
    FROM unnest(:tenants::int[], :types::int[]) AS said (tenant, type)
    JOIN tenant_types AS named ON named.tenant = said.tenant AND named.type = said.type
    WHERE (named.named_at < now() - interval '1 hour' OR named.let_go_at IS NOT NULL)
    FOR NO KEY UPDATE OF named SKIP LOCKED
)
UPDATE tenant_types SET named_at = now(), let_go_at = NULL
FROM free WHERE tenant_types.tenant = free.tenant AND tenant_types.type = free.type

-- name: lapse_shared
-- No shared worker has run it for long: from now on it counts for those tenants that name it.
-- A row that somebody holds is being named: what waits for it might be dated too early for those who follow.
WITH lapsed AS MATERIALIZED (
    SELECT id FROM job_types WHERE shared AND NOT by_hand AND said_at < now() - :unsaid::interval
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE job_types AS types SET shared = false, said_at = now(), updated_at = clock_timestamp()
FROM lapsed WHERE types.id = lapsed.id
RETURNING types.name

-- name: stale_tenants
-- Whose names should be looked at, in order.
SELECT DISTINCT tenant FROM tenant_types
WHERE tenant > :after AND ((let_go_at IS NULL AND named_at < now() - :unused::interval)
                           OR let_go_at < now() - :kept::interval)
ORDER BY tenant LIMIT :limit

-- name: stale_names
-- Names of a tenant that nobody was seen to use lately, and that nothing refers to unless a job does.
SELECT named.type, named.let_go_at IS NOT NULL AS is_let_go
FROM tenant_types AS named
WHERE named.tenant = :tenant
  AND ((named.let_go_at IS NULL AND named.named_at < now() - :unused::interval)
       OR named.let_go_at < now() - :kept::interval)
  AND NOT EXISTS (SELECT FROM schedules AS s WHERE s.shard = :shard AND s.tenant = :tenant AND s.type = named.type)
  AND NOT EXISTS (SELECT FROM bulk_actions AS a
                  WHERE a.shard = :shard AND a.tenant = :tenant AND a.type = named.type)
  AND NOT EXISTS (SELECT FROM pauses AS p WHERE p.tenant = :tenant AND p.type = named.type)
  AND NOT EXISTS (SELECT FROM circuits AS c WHERE c.tenant = :tenant AND c.type = named.type)
  AND NOT EXISTS (SELECT FROM quarantines AS q WHERE q.tenant = :tenant AND q.type = named.type)
ORDER BY named.type LIMIT :limit

-- name: keep_names
-- Jobs were found that refer to them: they are not looked at again for a while. What somebody holds is being named,
-- and is looked at with the next round: nobody waits for it, as it may wait for us.
WITH free AS MATERIALIZED (
    SELECT named.type FROM tenant_types AS named JOIN job_types AS types ON types.id = named.type
    WHERE named.tenant = :tenant AND named.type = ANY(:types::int[])
    FOR NO KEY UPDATE SKIP LOCKED
), kept AS (
    UPDATE tenant_types SET named_at = now(), let_go_at = NULL
    WHERE tenant = :tenant AND type IN (SELECT type FROM free)
)
UPDATE job_types SET let_go_at = NULL, updated_at = clock_timestamp()
WHERE id IN (SELECT type FROM free) AND let_go_at IS NOT NULL

-- name: let_go_names
-- They count no more. Every server hears of it and asks before it uses one again; a job that was on its way
-- meanwhile is found when they are looked at once more.
WITH free AS MATERIALIZED (
    SELECT named.type FROM tenant_types AS named JOIN job_types AS types ON types.id = named.type
    WHERE named.tenant = :tenant AND named.type = ANY(:types::int[])
      AND named.let_go_at IS NULL AND named.named_at < now() - :unused::interval
    FOR NO KEY UPDATE SKIP LOCKED
), gone AS (
    UPDATE tenant_types SET let_go_at = now() WHERE tenant = :tenant AND type IN (SELECT type FROM free)
)
UPDATE job_types SET renounced_at = clock_timestamp(), updated_at = clock_timestamp()
WHERE id IN (SELECT type FROM free)

-- name: drop_names
DELETE FROM tenant_types
WHERE tenant = :tenant AND type = ANY(:types::int[]) AND let_go_at < now() - :kept::interval

-- name: loose_types
-- Types that neither the house nor any tenant names, so old that no dated partition holds a job of them; and
-- those that were let go long ago, which no tenant is being looked at for.
SELECT id, let_go_at IS NOT NULL AS is_let_go
FROM job_types AS types
WHERE id > :after AND NOT shared AND said_at < :kept_since AND created_at < now() - :unused::interval
  AND ((let_go_at IS NULL AND NOT EXISTS (
            SELECT FROM tenant_types AS named WHERE named.type = types.id AND named.let_go_at IS NULL))
       OR (let_go_at < now() - :kept::interval AND NOT EXISTS (
            SELECT FROM tenant_types AS named WHERE named.type = types.id)))
ORDER BY id LIMIT :limit

-- name: referred_types
-- Those of these types that something of anybody's refers to; of jobs, those that outlived their partition; of usage,
-- what is not stated yet: a statement has the names of its time.
SELECT type FROM jobs_carried WHERE type = ANY(:types::int[])
UNION SELECT type FROM schedules WHERE type = ANY(:types::int[])
UNION SELECT type FROM pauses WHERE type = ANY(:types::int[])
UNION SELECT type FROM circuits WHERE type = ANY(:types::int[])
UNION SELECT type FROM quarantines WHERE type = ANY(:types::int[])
UNION SELECT type FROM bulk_actions WHERE type = ANY(:types::int[])
UNION SELECT type FROM usage_hours
      WHERE hour >= (SELECT min(stated_until) FROM billing_shards) AND type = ANY(:types::int[])

-- name: hold_types
-- Nobody names them from now on until the transaction ends; what is being named just now is not among them.
SELECT id FROM job_types WHERE id = ANY(:types::int[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED

-- name: let_go_types
-- Of types that are held: who named one before that is seen, and nobody does now.
UPDATE job_types AS types SET let_go_at = now(), updated_at = clock_timestamp()
WHERE id = ANY(:types::int[]) AND let_go_at IS NULL AND NOT shared AND said_at < :kept_since
  AND NOT EXISTS (SELECT FROM tenant_types AS named WHERE named.type = types.id AND named.let_go_at IS NULL)
RETURNING types.name

-- name: drop_types
-- Whoever names one again meanwhile holds its row, and then it is in use.
DELETE FROM job_types AS types
WHERE id = ANY(:types::int[]) AND let_go_at < now() - :kept::interval AND NOT shared
  AND NOT EXISTS (SELECT FROM tenant_types AS named WHERE named.type = types.id)
RETURNING name
