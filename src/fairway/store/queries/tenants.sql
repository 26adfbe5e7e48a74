-- name: read_cluster
-- What all servers of this database agree on.
SELECT shard_count, secret, coalesce(shards, shard_count) AS shards FROM cluster

-- name: found_cluster
-- The first server to come writes the row; the rest read it.
INSERT INTO cluster (shard_count, secret) VALUES (:shard_count, :secret) ON CONFLICT DO NOTHING

-- name: storage_marker
-- Of the object storage that belongs to this database; none before the first server opened one.
SELECT storage_marker FROM cluster

-- name: lock_storage_marker
-- One server at a time marks a storage.
SELECT storage_marker FROM cluster FOR UPDATE

-- name: know_storage_marker
UPDATE cluster SET storage_marker = :marker

-- name: add_shards
INSERT INTO shards (shard) SELECT generate_series(0, :shard_count::int - 1) ON CONFLICT DO NOTHING

-- name: add_tenant
-- One that is made after the shards became more is spread over all of them, and has its shard with it. So has one whose
-- number leads to a shard that another is moved to: nobody owns that until the move is over.
INSERT INTO tenants (id, shard, name, tier, weight, depth_limit, cap, rate_per_second, burst, reserved, part_of)
SELECT next.id,
       coalesce(:shard::int, (
           SELECT coalesce(moves.from_shard, CASE WHEN cluster.shards > cluster.shard_count THEN next.id % cluster.shards END)
           FROM cluster LEFT JOIN tenant_moves AS moves ON moves.finished_at IS NULL
                AND moves.to_shard = next.id % coalesce(cluster.shards, cluster.shard_count))),
       :name, :tier, :weight, :depth_limit, :cap, :rate_per_second, :burst, :reserved::text::jsonb, :part_of::int
FROM (SELECT nextval(pg_get_serial_sequence('tenants', 'id'))::int AS id OFFSET 0) AS next
ON CONFLICT (name) DO NOTHING
RETURNING id

-- name: set_parts
-- All parts of a tenant know all of them: what it is entitled to is divided among so many.
UPDATE tenants SET parts = :parts::int[], shard = coalesce(shard, id % (SELECT shard_count FROM cluster)), updated_at = now()
WHERE id = ANY(:parts::int[])

-- name: read_settings
-- A tenant's own values, to be changed in the same transaction.
SELECT tier, weight, depth_limit, cap, rate_per_second, burst, reserved::text AS reserved
FROM tenants WHERE name = :name FOR UPDATE

-- name: change_tenant
UPDATE tenants SET tier = :tier, weight = :weight, depth_limit = :depth_limit, cap = :cap,
                   rate_per_second = :rate_per_second, burst = :burst,
                   reserved = :reserved::text::jsonb, updated_at = now()
WHERE name = :name OR part_of = (SELECT id FROM tenants WHERE name = :name)

-- name: set_job_events
-- Whether a tenant hears what becomes of its jobs. Said again, it is no change.
UPDATE tenants SET job_events = :wanted, updated_at = now() WHERE id = :id AND job_events <> :wanted

-- part: tenant
-- With the values in force: its own, else its tier's.
tenants.id, tenants.name, coalesce(tenants.weight, tiers.weight) AS weight,
coalesce(tenants.depth_limit, tiers.depth_limit) AS depth_limit, tenants.tier,
tiers.fair_group, tiers.floor_share, coalesce(tenants.cap, tiers.cap) AS cap,
coalesce(tenants.rate_per_second, tiers.rate_per_second) AS rate_per_second,
coalesce(tenants.burst, 10 * tenants.rate_per_second, tiers.burst) AS burst,
tenants.job_events, tenants.reserved::text AS reserved, tenants.state, tenants.reason,
tenants.cancels_running, tenants.state_since, tenants.shard,
tenants.moving_to, tenants.moved_from, tenants.part_of, tenants.parts

-- name: changed_tenants
-- What is new or different since a moment. The overlap makes up for late commits.
SELECT {tenant}
FROM tenants JOIN tiers ON tiers.name = tenants.tier
WHERE tenants.updated_at > :since::timestamptz - interval '10 seconds'

-- name: moves_asked
-- Of tenants, so far.
SELECT moves FROM cluster

-- name: moved_tenants
-- All that are on their way to another shard, or were in another before.
SELECT {tenant}
FROM tenants JOIN tiers ON tiers.name = tenants.tier
WHERE tenants.moving_to IS NOT NULL OR tenants.moved_from <> '{}'

-- name: read_tenant
-- One tenant, as it is read when it changed.
SELECT {tenant}
FROM tenants JOIN tiers ON tiers.name = tenants.tier
WHERE tenants.id = :id

-- name: list_tenants
-- A page of tenants by name: of these states, and of a tier or with some text in their name.
SELECT {tenant}
FROM (SELECT * FROM tenants
      WHERE name > :after AND part_of IS NULL AND state = ANY(:states::text[])
        AND (:tier::text IS NULL OR tier = :tier)
        AND (:search::text IS NULL OR strpos(name, :search) > 0)
      ORDER BY name LIMIT :limit) AS tenants  -- the page first: to join all for it costs what there are
JOIN tiers ON tiers.name = tenants.tier
ORDER BY tenants.name

-- part: key_as_listed
-- Without what is secret.
id, scope, tenant, name, permissions, pools, types, created_at, expires_at, last_used_at, only_tenants

-- part: key_as_asked
-- What is compared with a key that somebody shows.
id, scope, tenant, secret_hash, permissions, pools, types, name, only_tenants

-- name: list_keys
-- A page of the valid keys by public part: of one scope or tenant, or of all.
SELECT {key_as_listed} FROM api_keys
WHERE id > :after AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
  AND (:scope::text IS NULL OR scope = :scope) AND (:tenant::int IS NULL OR tenant = :tenant)
ORDER BY id LIMIT :limit

-- name: add_key
INSERT INTO api_keys (id, scope, tenant, secret_hash, permissions, pools, types, only_tenants, name,
                      expires_at)
VALUES (:id, :scope, :tenant, :secret_hash, :permissions, :pools, :types, :only_tenants, :name,
        :expires_at)

-- name: key_facts
-- A valid key, held until the transaction ends: it is rotated by one at a time.
SELECT {key_as_listed} FROM api_keys
WHERE id = :id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
FOR UPDATE

-- name: expire_key
UPDATE api_keys SET expires_at = least(expires_at, :at), changed_at = now()
WHERE id = :id AND revoked_at IS NULL

-- name: lock_operators
-- Two who found a platform at once make one first key between them.
LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE

-- name: keys_used
-- To the quarter of an hour: a key that is used all day is not written all day. Servers that write
-- the same keys pass each other by.
UPDATE api_keys SET last_used_at = now()
WHERE id IN (
    SELECT id FROM api_keys
    WHERE id = ANY(:ids::text[])
      AND (last_used_at IS NULL OR last_used_at < now() - interval '15 minutes')
    FOR UPDATE SKIP LOCKED
)

-- name: read_key
-- A key that is unknown, revoked or expired is simply not there.
SELECT {key_as_asked} FROM api_keys
WHERE id = :id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())

-- name: changed_keys
-- Keys made since a moment, newest first, so many at most; others are read when they are used.
SELECT {key_as_asked} FROM api_keys
WHERE created_at > :since::timestamptz - interval '10 seconds'
  AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
ORDER BY created_at DESC LIMIT :limit

-- name: store_now
SELECT now()

-- name: directory_news
-- Which of these has news since a moment: at most times none has. As in `changed_tenants`, `changed_keys` and `revoked_keys`.
SELECT now() AS now,
       EXISTS (SELECT FROM tenants WHERE updated_at > :since::timestamptz - interval '10 seconds') AS tenants,
       EXISTS (SELECT FROM api_keys WHERE created_at > :since::timestamptz - interval '10 seconds') AS keys,
       EXISTS (
           SELECT FROM api_keys
           WHERE revoked_at > :since::timestamptz - interval '30 seconds'
              OR expires_at BETWEEN :since::timestamptz - interval '30 seconds' AND now()
       ) AS revoked

-- name: revoked_keys
-- Keys that stopped being valid since a moment; the overlap makes up for late commits.
SELECT id FROM api_keys
WHERE revoked_at > :since::timestamptz - interval '30 seconds'
   OR expires_at BETWEEN :since::timestamptz - interval '30 seconds' AND now()

-- name: revoke_key
UPDATE api_keys SET revoked_at = now(), changed_at = now() WHERE id = :id AND revoked_at IS NULL
