-- name: full_tenants
-- Whose logins are refused for now, of the tenants that have their home in a shard.
SELECT DISTINCT login.tenant FROM sql_logins AS login JOIN tenants AS whose ON whose.id = login.tenant, cluster
WHERE login.is_full AND coalesce(whose.shard, whose.id % cluster.shard_count) = :shard

-- name: mark_full
UPDATE sql_logins SET is_full = :is_full WHERE tenant = :tenant AND is_full <> :is_full

-- name: allow_login
-- A login hands in jobs of one tenant; named again, of another. Not of one in several shards: a key may be in any of them.
INSERT INTO sql_logins (login, tenant)
SELECT :login, id FROM tenants WHERE name = :name AND state <> 'deleted' AND parts = '{}'
ON CONFLICT (login) DO UPDATE SET tenant = excluded.tenant, is_full = false
RETURNING tenant

-- name: forbid_login
DELETE FROM sql_logins WHERE login = :login AND tenant = (SELECT id FROM tenants WHERE name = :name)
RETURNING tenant

-- name: may_create
-- Whether a login makes functions and tables where ours are: then our own statements may mean those.
SELECT has_schema_privilege(:login::text, current_schema(), 'CREATE')
