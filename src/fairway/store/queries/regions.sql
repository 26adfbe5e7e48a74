-- name: found_region
-- The first server that knows its region says so for good; a row that is there stays.
-- Not where a tenant has several shards: regions do not know of its parts.
INSERT INTO region_state (region, directory, directory_term) SELECT :region, :directory, 1
WHERE NOT EXISTS (SELECT FROM tenants WHERE part_of IS NOT NULL)
ON CONFLICT DO NOTHING

-- name: region_signs
-- Which region this store is, if any, and whether it could become one.
SELECT (SELECT region FROM region_state) AS region,
       EXISTS (SELECT FROM tenants WHERE part_of IS NOT NULL) AS has_parts,
       EXISTS (SELECT FROM tenants) AS has_tenants

-- name: read_region
SELECT region, directory, directory_term, known_until, conflicts, now() AS now FROM region_state

-- name: follow_directory
-- Another region is the directory, by a higher term: all of it is asked for anew. Of two that took the same term the name
-- decides, and what the other said under it stands below all that the one that leads says.
WITH before AS MATERIALIZED (
    SELECT directory_term FROM region_state FOR UPDATE
), followed AS (
    UPDATE region_state SET directory = :directory, directory_term = :term, known_until = '-infinity'
    FROM before
    WHERE (region_state.directory_term, region_state.directory) < (:term, :directory)
    RETURNING before.directory_term
)
UPDATE tenant_homes SET directory_term = :term - 1, changed_at = now()
WHERE tenant_homes.directory_term = :term AND EXISTS (SELECT FROM followed WHERE followed.directory_term = :term)

-- name: hold_directory
-- Whether this is the directory that is followed; until the transaction ends no other is.
SELECT true AS is_followed FROM region_state WHERE directory = :directory AND directory_term = :term FOR SHARE

-- name: begin_pull
-- One server of the region asks at a time; who died meanwhile holds nobody up for long.
UPDATE region_state SET pulled_at = now()
WHERE pulled_at < now() - make_interval(secs => :pause_seconds::float8)
RETURNING true AS is_ours

-- name: directory_pulled
-- All that the directory had up to that moment of its clock is here.
UPDATE region_state SET known_until = :known_until, conflicts = :conflicts
WHERE directory = :directory AND directory_term = :term

-- name: all_homes
SELECT tenant, region, term, directory_term FROM tenant_homes
WHERE changed_at > :since::timestamptz - interval '10 seconds'

-- name: count_homes
-- How many tenants are at home where; those without a row are in the directory.
SELECT coalesce(home.region, :directory) AS region, count(*) AS tenants
FROM tenants LEFT JOIN tenant_homes AS home ON home.tenant = tenants.id
WHERE tenants.state <> 'deleted'
GROUP BY 1

-- name: lock_homes
-- Whoever moves homes is alone: what it read of them holds until it is done.
SELECT region FROM region_state FOR UPDATE

-- name: stay_at_home
-- Until this transaction ends no home moves in this store. Of the table, not of rows: tenants that never moved have none, and
-- whoever moves homes waits in line, however many come and go.
LOCK TABLE tenant_homes IN ROW SHARE MODE

-- name: home_here
-- By what is on disk: whether a tenant is at home here, and its home, if it ever moved.
SELECT coalesce(home.region, state.directory) = state.region AS is_here, home.region, home.term, home.directory_term
FROM region_state AS state LEFT JOIN tenant_homes AS home ON home.tenant = :tenant

-- name: move_homes
-- What other regions send is being written while they were at home here; from here on nothing of it is.
LOCK TABLE tenant_homes IN EXCLUSIVE MODE

-- name: home_of
SELECT region, term, directory_term FROM tenant_homes WHERE tenant = :tenant

-- name: set_home
INSERT INTO tenant_homes AS held (tenant, region, term, directory_term)
SELECT tenants.id, :region, 1, :directory_term FROM tenants WHERE tenants.id = :tenant
ON CONFLICT (tenant) DO UPDATE
    SET region = excluded.region, term = held.term + 1, directory_term = excluded.directory_term,
        came_from = NULL, changed_at = now()
RETURNING term

-- name: fail_over
-- All that are at home there, by a row or for want of one, move; it is remembered where from.
INSERT INTO tenant_homes AS held (tenant, region, term, directory_term, came_from)
SELECT tenants.id, :target, 1, :directory_term, :source
FROM tenants LEFT JOIN tenant_homes AS home ON home.tenant = tenants.id
WHERE coalesce(home.region, :directory) = :source
ON CONFLICT (tenant) DO UPDATE
    SET region = excluded.region, term = held.term + 1, directory_term = excluded.directory_term,
        came_from = excluded.came_from, changed_at = now()

-- name: taken_from
-- The tenants that a failover took from a region, and that did not go back yet.
SELECT tenant, region, term, directory_term FROM tenant_homes WHERE came_from = :region AND region <> :region

-- name: note_handed_over
-- All that waited here of these tenants was handed over, or is held for that; under the homes that they have.
UPDATE tenant_homes SET handed_over_term = asked.term, handed_over_directory_term = asked.directory_term
FROM unnest(:tenants::int[], :terms::bigint[], :directory_terms::bigint[]) AS asked (tenant, term, directory_term)
WHERE tenant_homes.tenant = asked.tenant
  AND (tenant_homes.term, tenant_homes.directory_term) = (asked.term, asked.directory_term)
  AND (handed_over_term, handed_over_directory_term) IS DISTINCT FROM (asked.term, asked.directory_term)

-- name: not_handed_over
-- Those of these tenants of which something may wait here that has not been looked at since they left.
SELECT asked.tenant
FROM unnest(:tenants::int[], :terms::bigint[], :directory_terms::bigint[]) AS asked (tenant, term, directory_term)
LEFT JOIN tenant_homes AS home ON home.tenant = asked.tenant
WHERE (home.handed_over_term, home.handed_over_directory_term) IS DISTINCT FROM (asked.term, asked.directory_term)

-- name: fail_back
-- What a failover took away goes back, if it is still where the region was asked about.
UPDATE tenant_homes SET region = :region, term = tenant_homes.term + 1, directory_term = :directory_term,
                        came_from = NULL, changed_at = now()
FROM unnest(:tenants::int[], :terms::bigint[], :directory_terms::bigint[]) AS asked (tenant, term, directory_term)
WHERE tenant_homes.tenant = asked.tenant AND tenant_homes.came_from = :region
  AND (tenant_homes.term, tenant_homes.directory_term) = (asked.term, asked.directory_term)

-- name: be_directory
-- This region is the directory from now on, by a term above all that it has heard of.
UPDATE region_state SET directory = region, directory_term = greatest(directory_term, :heard) + 1,
                        known_until = '-infinity', conflicts = 0
RETURNING directory_term

-- name: restate_homes
-- All homes are said anew under a new term, not only those that move with it: whatever another directory said of any of them
-- while one of the two was cut off was said under a lower term.
UPDATE tenant_homes SET directory_term = :directory_term, changed_at = now() WHERE directory_term < :directory_term

-- name: state_homes
-- So do those for want of a row: a region that took over from this one, unheard, has a row for each of its tenants.
INSERT INTO tenant_homes (tenant, region, term, directory_term)
SELECT tenants.id, :directory, 1, :directory_term FROM tenants
LEFT JOIN tenant_homes AS home ON home.tenant = tenants.id
WHERE home.tenant IS NULL
ON CONFLICT (tenant) DO NOTHING

-- name: raise_term
-- Homes that were moved together stand above all that was said before.
UPDATE region_state SET directory_term = directory_term + 1 RETURNING directory_term

-- name: pass_over
-- A new directory makes numbers of tenants that nobody has: not those that it knows of, nor those after them, which the lost
-- one may have given before it was lost. (A function, for to set a sequence is its owner's right.)
SELECT fairway_pass_over_tenants() AS last

-- name: changed_tiers
SELECT coalesce(json_agg(row_to_json(tiers)), '[]')::text AS rows FROM tiers

-- name: changed_tenants_page
-- As they stand in their rows, oldest change first; many may have changed at one moment.
SELECT row_to_json(tenants)::text AS row, updated_at AS changed_at, id::text AS key FROM tenants
WHERE (updated_at, id) > (:since::timestamptz, :after::text::int) ORDER BY updated_at, id LIMIT :limit

-- name: changed_keys_page
-- With the name of its tenant: its number may be another's in the store that this is for.
SELECT row_to_json(named)::text AS row, changed_at, id AS key FROM (
    SELECT api_keys.*, tenants.name AS tenant_name
    FROM api_keys LEFT JOIN tenants ON tenants.id = api_keys.tenant
    WHERE (api_keys.changed_at, api_keys.id) > (:since::timestamptz, :after)
    ORDER BY api_keys.changed_at, api_keys.id LIMIT :limit
) AS named ORDER BY changed_at, id

-- name: changed_homes_page
SELECT row_to_json(tenant_homes)::text AS row, changed_at, tenant::text AS key FROM tenant_homes
WHERE (changed_at, tenant) > (:since::timestamptz, :after::text::int) ORDER BY changed_at, tenant LIMIT :limit

-- name: store_tiers
INSERT INTO tiers AS held (name, weight, fair_group, floor_share, cap, rate_per_second, burst, depth_limit)
SELECT name, weight, fair_group, floor_share, cap, rate_per_second, burst, depth_limit
FROM json_populate_recordset(NULL::tiers, :rows::text::json)
ON CONFLICT (name) DO UPDATE SET
    weight = excluded.weight, fair_group = excluded.fair_group, floor_share = excluded.floor_share,
    cap = excluded.cap, rate_per_second = excluded.rate_per_second, burst = excluded.burst,
    depth_limit = excluded.depth_limit
WHERE (held.weight, held.fair_group, held.floor_share, held.cap, held.rate_per_second, held.burst, held.depth_limit)
      IS DISTINCT FROM
      (excluded.weight, excluded.fair_group, excluded.floor_share, excluded.cap, excluded.rate_per_second,
       excluded.burst, excluded.depth_limit)
RETURNING name

-- name: touch_tenants_of_tiers
UPDATE tenants SET updated_at = now() WHERE tier = ANY(:names::text[])

-- name: store_tenants
-- Under the directory's numbers; a row that says the same is left alone, and nobody re-reads it. Whether a tenant hears of
-- its jobs is its home's affair.
INSERT INTO tenants AS held (id, name, tier, weight, depth_limit, cap, rate_per_second, burst, reserved, job_events, state,
                             reason, cancels_running, state_since, created_at, shard)
SELECT new.id, new.name, new.tier, new.weight, new.depth_limit, new.cap, new.rate_per_second, new.burst, new.reserved,
       new.job_events, new.state, new.reason, new.cancels_running, new.state_since, new.created_at, new.shard
FROM json_populate_recordset(NULL::tenants, :rows::text::json) AS new
WHERE NOT EXISTS (SELECT FROM tenants AS other WHERE (other.id = new.id) <> (other.name = new.name))
ON CONFLICT (id) DO UPDATE SET
    tier = excluded.tier, weight = excluded.weight, depth_limit = excluded.depth_limit, cap = excluded.cap,
    rate_per_second = excluded.rate_per_second, burst = excluded.burst, reserved = excluded.reserved,
    state = excluded.state, reason = excluded.reason,
    cancels_running = excluded.cancels_running, state_since = excluded.state_since, updated_at = now()
WHERE (held.tier, held.weight, held.depth_limit, held.cap, held.rate_per_second, held.burst, held.reserved,
       held.state, held.reason, held.cancels_running, held.state_since)
      IS DISTINCT FROM
      (excluded.tier, excluded.weight, excluded.depth_limit, excluded.cap, excluded.rate_per_second, excluded.burst,
       excluded.reserved, excluded.state, excluded.reason, excluded.cancels_running, excluded.state_since)

-- name: count_conflicts
-- Tenants of the directory whose number or name is another's in this store.
SELECT count(*) AS conflicts
FROM json_populate_recordset(NULL::tenants, :rows::text::json) AS new
WHERE EXISTS (SELECT FROM tenants AS other WHERE (other.id = new.id) <> (other.name = new.name))

-- name: store_keys
-- A key whose tenant could not be stored opens nothing here, and nobody else's jobs. (A build before this told no names.)
INSERT INTO api_keys AS held (id, scope, tenant, secret_hash, created_at, expires_at, revoked_at, name, permissions, pools,
                              types, only_tenants)
SELECT new.id, new.scope, new.tenant, new.secret_hash, now(), new.expires_at, new.revoked_at, new.name, new.permissions,
       new.pools, new.types, new.only_tenants
FROM json_populate_recordset(NULL::api_keys, :rows::text::json) AS new
JOIN json_to_recordset(:rows::text::json) AS named (id text, tenant_name text) ON named.id = new.id
WHERE new.tenant IS NULL
   OR EXISTS (SELECT FROM tenants WHERE tenants.id = new.tenant AND tenants.name = coalesce(named.tenant_name, tenants.name))
ON CONFLICT (id) DO UPDATE
    SET expires_at = excluded.expires_at, revoked_at = CASE WHEN excluded.revoked_at IS NOT NULL THEN now() END,
        changed_at = now()
WHERE held.expires_at IS DISTINCT FROM excluded.expires_at
   OR (held.revoked_at IS NULL) <> (excluded.revoked_at IS NULL)

-- name: store_homes
-- What was said under a higher directory term, or a higher term of the same, stands.
INSERT INTO tenant_homes AS held (tenant, region, term, directory_term, came_from)
SELECT new.tenant, new.region, new.term, new.directory_term, new.came_from
FROM json_populate_recordset(NULL::tenant_homes, :rows::text::json) AS new
ON CONFLICT (tenant) DO UPDATE
    SET region = excluded.region, term = excluded.term, directory_term = excluded.directory_term,
        came_from = excluded.came_from, changed_at = now()
WHERE (held.directory_term, held.term) < (excluded.directory_term, excluded.term)
