-- name: lock_tenant
-- One at a time counts ends in a tenant's flows, or changes who waits for whom: several rows are locked for that, and
-- no order of rows would do for all.
SELECT pg_advisory_xact_lock(:shard::int, :tenant::int)

-- name: lock_tenant_soon
-- The same, and for the rest of the transaction no lock is waited for long: whoever wants the connection next shall not
-- wait for one tenant. (FROM comes first.)
SELECT pg_advisory_xact_lock(:shard::int, :tenant::int) FROM set_config('lock_timeout', '250ms', true)

-- name: try_lock_tenant
-- The same, if nobody has it now.
SELECT pg_try_advisory_xact_lock(:shard::int, :tenant::int) FROM set_config('lock_timeout', '250ms', true)
