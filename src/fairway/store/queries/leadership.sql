-- name: claim_shards
-- Take every shard whose owner has let its term run out, but for those the caller holds: a term that
-- nobody else took is good, and renewed. Waits for the old owner's last statement, which holds the row;
-- whatever comes after it finds another term and writes nothing. The new term begins after the wait.
-- Beside them, those that the caller knows to be unrenewed, unless they were renewed since; and those in
-- degraded mode: who stands in gives way to an owner at once, however long its term would last.
-- Whoever passes calls on to the owner hears of the new one.
WITH free AS MATERIALIZED (
    SELECT shard, expires_at = '-infinity' AS was_handed_over FROM shards
    WHERE (expires_at < now() OR degraded_term = term
           OR (shard, expires_at) IN (SELECT * FROM unnest(:unrenewed::int[], :ends::timestamptz[])))
      AND shard <> ALL(:held::int[])
    ORDER BY shard FOR UPDATE
), taken AS (
    UPDATE shards SET term = term + 1, owner = :owner, owner_url = :owner_url,
                      expires_at = clock_timestamp() + :term_time::interval
    FROM free WHERE shards.shard = free.shard
    RETURNING shards.shard, shards.term, free.was_handed_over
)
SELECT shard, term, was_handed_over, pg_notify(:channel, '') FROM taken

-- name: unowned_shards
-- Those whose owner is gone, or for whom somebody stands in.
SELECT shard FROM shards WHERE expires_at < now() OR degraded_term = term ORDER BY shard

-- name: stand_in
-- As `claim_shards`, for a server that does not own: of these shards those that nobody has. The term says
-- for itself that it is one of degraded mode; whatever claims the shard later, by whichever build, ends that.
WITH free AS MATERIALIZED (
    SELECT shard FROM shards WHERE shard = ANY(:wanted::int[]) AND expires_at < now() ORDER BY shard FOR UPDATE
), taken AS (
    UPDATE shards SET term = term + 1, degraded_term = term + 1, owner = :owner, owner_url = :owner_url,
                      expires_at = clock_timestamp() + :term_time::interval
    FROM free WHERE shards.shard = free.shard
    RETURNING shards.shard, shards.term
)
SELECT shard, term, pg_notify(:channel, '') FROM taken

-- name: renew_shards
-- From the moment that the rows are held, not from the one it was asked: what was renewed is in force.
WITH mine AS MATERIALIZED (
    SELECT shards.shard FROM shards
    JOIN unnest(:shards::int[], :terms::bigint[]) AS held (shard, term)
      ON shards.shard = held.shard AND shards.term = held.term
    ORDER BY shards.shard FOR NO KEY UPDATE OF shards
)
UPDATE shards SET expires_at = clock_timestamp() + :term_time::interval
FROM mine WHERE shards.shard = mine.shard
RETURNING shards.shard, shards.term

-- name: release_shards
-- A clean stop hands over at once, and whoever waits for a shard hears of it. With every lease written down,
-- as '-infinity' says, the next owner need not ask the workers what they run.
WITH gone AS (
    UPDATE shards SET expires_at = CASE WHEN held.all_written THEN '-infinity' ELSE now() - interval '1 second' END
    FROM unnest(:shards::int[], :terms::bigint[], :all_written::boolean[]) AS held (shard, term, all_written)
    WHERE shards.shard = held.shard AND shards.term = held.term
    RETURNING shards.shard
)
SELECT shard, pg_notify(:channel, '') FROM gone

-- name: read_owners
SELECT shard, term, owner, owner_url FROM shards WHERE expires_at >= now()

-- name: overlong_terms
-- Terms that end later than anybody would write now: the clock was ahead when they were written.
SELECT shard, expires_at FROM shards WHERE expires_at > now() + :far_time::interval

-- name: database_now
SELECT clock_timestamp() AS now
