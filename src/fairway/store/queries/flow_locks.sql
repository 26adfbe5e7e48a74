-- name: lock_tenant
-- One at a time counts ends in a tenant's flows, or changes who waits for whom: several rows are locked for that, and
-- no order of rows would do for all. A row of our own: an advisory lock can be taken by any login of the database.
SELECT shard FROM flow_turns WHERE shard = :shard AND tenant = :tenant FOR UPDATE

-- name: lock_tenant_soon
-- The same, and for the rest of the transaction no lock is waited for long: whoever wants the connection next shall not
-- wait for one tenant. (Rows are locked when all that FROM names is there.)
SELECT turn.shard FROM set_config('lock_timeout', '250ms', true), flow_turns AS turn
WHERE turn.shard = :shard AND turn.tenant = :tenant FOR UPDATE OF turn

-- name: try_lock_tenant
-- The same, if nobody has it now.
SELECT turn.shard FROM set_config('lock_timeout', '250ms', true), flow_turns AS turn
WHERE turn.shard = :shard AND turn.tenant = :tenant FOR UPDATE OF turn NOWAIT

-- name: add_turn
-- Of a tenant whose first flow comes.
INSERT INTO flow_turns (shard, tenant) VALUES (:shard, :tenant) ON CONFLICT DO NOTHING
