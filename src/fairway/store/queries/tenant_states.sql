-- name: hold_tenant
-- A tenant's state by its name, held until the transaction ends: one act at a time.
SELECT id, name, state, state_since, now() AS now, reason, cancels_running,
       CASE WHEN parts = '{}' THEN ARRAY[id] ELSE parts END AS parts
FROM tenants WHERE name = :name FOR UPDATE

-- name: set_state
-- Of all parts of a tenant, which has one as a rule.
UPDATE tenants SET state = :state, reason = :reason, cancels_running = :cancels_running,
                   state_since = now(), updated_at = now()
WHERE id = ANY(:parts::int[])

-- name: keys_of
-- Valid keys of these tenants, by public part, with whose they are.
SELECT id, tenant FROM api_keys WHERE tenant = ANY(:tenants::int[]) AND revoked_at IS NULL

-- name: revoke_keys_of
UPDATE api_keys SET revoked_at = now(), changed_at = now() WHERE tenant = :tenant AND revoked_at IS NULL

-- name: forbid_logins_of
DELETE FROM sql_logins WHERE tenant = :tenant

-- name: hold_deleted
-- A tenant that is deleted stays so until the transaction ends: whoever restores it waits.
SELECT id FROM tenants WHERE id = :tenant AND state = 'deleted' FOR SHARE

-- name: remove_schedules
-- Bounded: at most so many a round. A schedule goes with its runs.
WITH gone AS (
    DELETE FROM schedules WHERE shard = :shard AND tenant = :tenant AND name IN (
        SELECT name FROM schedules WHERE shard = :shard AND tenant = :tenant ORDER BY name LIMIT :limit
    ) RETURNING name
), runs AS (
    DELETE FROM schedule_runs WHERE shard = :shard AND tenant = :tenant AND name IN (SELECT name FROM gone)
)
SELECT count(*) FROM gone

-- name: remove_waiting
-- Bounded: committed with transactions, and not handed in yet.
DELETE FROM outbox WHERE shard = :shard AND tenant = :tenant AND id IN (
    SELECT id FROM outbox WHERE shard = :shard AND tenant = :tenant ORDER BY id LIMIT :limit
)

-- name: remove_held
-- Bounded: of a tenant whose home is another region, accepted here and not handed over yet; and what became of others.
DELETE FROM held_jobs WHERE shard = :shard AND tenant = :tenant AND id IN (
    SELECT id FROM held_jobs WHERE shard = :shard AND tenant = :tenant ORDER BY id LIMIT :limit
)

-- name: remove_webhooks
-- A tenant has a few.
DELETE FROM webhooks WHERE shard = :shard AND tenant = :tenant

-- name: remove_deliveries
-- Bounded: at most so many a round.
DELETE FROM webhook_deliveries WHERE shard = :shard AND tenant = :tenant AND (webhook, number) IN (
    SELECT webhook, number FROM webhook_deliveries WHERE shard = :shard AND tenant = :tenant LIMIT :limit
)

-- name: forget_restraints_of
WITH of_pauses AS (DELETE FROM pauses WHERE tenant = :tenant),
     of_circuits AS (DELETE FROM circuits WHERE tenant = :tenant),
     of_caps AS (DELETE FROM spend_caps WHERE tenant = :tenant)
DELETE FROM quarantines WHERE tenant = :tenant

-- name: forget_keys_of
DELETE FROM api_keys WHERE tenant = :tenant

-- name: hold_lapsed
-- A tenant whose time is over, held until the transaction ends: nobody restores it meanwhile.
SELECT id FROM tenants
WHERE id = :tenant AND state = 'deleted' AND state_since <= now() - :kept::interval
  AND NOT EXISTS (SELECT FROM usage_log WHERE usage_log.shard IN (:shard, book_of(:shard)) AND :tenant = ANY(tenant_ids))
  AND NOT EXISTS (SELECT FROM usage_hours WHERE usage_hours.tenant = :tenant
                  AND hour >= (SELECT stated_until FROM billing_shards WHERE billing_shards.shard = :shard))
FOR UPDATE

-- name: forget_tenant
DELETE FROM tenants WHERE id = :tenant
