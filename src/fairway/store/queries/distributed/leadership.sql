-- On a distributed store each statement is for shards that lie together (`:among`): a node that is away stops its own
-- alone. Rows are locked for no longer than their statement, so its own moment is that at which they are held; and
-- whoever is to hear of it is told by a statement of its own: what a node notifies, nobody hears.

-- name: claim_shards
WITH free AS MATERIALIZED (
    SELECT shard, expires_at = '-infinity' AS was_handed_over, owner AS last_owner FROM shards
    WHERE shard = ANY(:among::int[])
      AND (expires_at < now() OR degraded_term = term
           OR (shard, expires_at) IN (SELECT * FROM unnest(:unrenewed::int[], :ends::timestamptz[])))
    ORDER BY shard FOR UPDATE SKIP LOCKED
)
UPDATE shards SET term = term + 1, owner = :owner, owner_url = :owner_url, expires_at = now() + :term_time::interval
FROM free WHERE shards.shard = ANY(:among::int[]) AND shards.shard = free.shard
RETURNING shards.shard, shards.term, free.was_handed_over, free.last_owner

-- name: unowned_shards
SELECT shard FROM shards
WHERE shard = ANY(:among::int[]) AND (expires_at < now() OR degraded_term = term) ORDER BY shard

-- name: stand_in
WITH free AS MATERIALIZED (
    SELECT shard FROM shards
    WHERE shard = ANY(:among::int[]) AND expires_at < now()
    ORDER BY shard FOR UPDATE SKIP LOCKED
)
UPDATE shards SET term = term + 1, degraded_term = term + 1, owner = :owner, owner_url = :owner_url,
                  expires_at = now() + :term_time::interval
FROM free WHERE shards.shard = ANY(:among::int[]) AND shards.shard = free.shard
RETURNING shards.shard, shards.term

-- name: renew_shards
WITH held AS MATERIALIZED (
    SELECT shard, term, is_open
    FROM unnest(:shards::int[], :terms::bigint[], :opened::boolean[]) AS held (shard, term, is_open)
), mine AS MATERIALIZED (
    SELECT shards.shard, held.is_open FROM shards
    JOIN held ON shards.shard = held.shard AND shards.term = held.term
    WHERE shards.shard = ANY(:among::int[])
    ORDER BY shards.shard FOR NO KEY UPDATE OF shards SKIP LOCKED
), renewed AS (
    UPDATE shards SET expires_at = now() + :term_time::interval,
                      opened_term = CASE WHEN mine.is_open THEN shards.term ELSE shards.opened_term END
    FROM mine WHERE shards.shard = ANY(:among::int[]) AND shards.shard = mine.shard
    RETURNING shards.shard
)
SELECT shards.shard, shards.term, renewed.shard IS NOT NULL AS is_renewed
FROM shards JOIN held ON shards.shard = held.shard AND shards.term = held.term
LEFT JOIN renewed ON renewed.shard = shards.shard
WHERE shards.shard = ANY(:among::int[])

-- name: read_shards
SELECT shard, term, owner, owner_url, expires_at >= now() AS has_owner,
       expires_at < now() OR degraded_term = term AS is_free, opened_term = term AS is_open,
       CASE WHEN expires_at > now() + :far_time::interval THEN expires_at END AS overlong_until,
       CASE WHEN expires_at >= now() THEN expires_at END AS ends_at
FROM shards WHERE shard = ANY(:among::int[]) ORDER BY shard

-- name: count_open
SELECT count(*) FROM shards
WHERE shard = ANY(:among::int[]) AND expires_at >= now()
  AND (opened_term = term OR shard + 0 = ANY(:here::int[]) OR owner <> ALL(:known::text[]))

-- name: release_shards
WITH held AS MATERIALIZED (
    SELECT shard, term, all_written
    FROM unnest(:shards::int[], :terms::bigint[], :all_written::boolean[]) AS held (shard, term, all_written)
), mine AS MATERIALIZED (
    SELECT shards.shard, held.all_written FROM shards
    JOIN held ON shards.shard = held.shard AND shards.term = held.term
    WHERE shards.shard = ANY(:among::int[])
    ORDER BY shards.shard FOR NO KEY UPDATE OF shards SKIP LOCKED
), gone AS (
    UPDATE shards SET expires_at = least((SELECT '-infinity'::timestamptz WHERE mine.all_written),
                                         (SELECT now() - interval '1 second'))
    FROM mine WHERE shards.shard = ANY(:among::int[]) AND shards.shard = mine.shard
    RETURNING shards.shard
)
SELECT held.shard, gone.shard IS NOT NULL AS is_gone, NULL::text AS told
FROM shards JOIN held ON shards.shard = held.shard AND shards.term = held.term
LEFT JOIN gone ON gone.shard = held.shard
WHERE shards.shard = ANY(:among::int[])

-- name: write_rates
INSERT INTO rate_windows AS known (shard, term, saved_at, windows)
SELECT shards.shard, shards.term, now(), saved.windows
FROM shards JOIN unnest(:shards::int[], :terms::bigint[], :windows::bytea[]) AS saved (shard, term, windows)
  ON saved.shard = shards.shard AND saved.term = shards.term
WHERE shards.shard = ANY(:among::int[])
ON CONFLICT (shard) DO UPDATE SET term = excluded.term, saved_at = excluded.saved_at, windows = excluded.windows

-- name: read_owners
SELECT shard, term, owner, owner_url FROM shards WHERE shard = ANY(:among::int[]) AND expires_at >= now()
