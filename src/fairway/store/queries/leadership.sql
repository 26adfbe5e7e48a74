-- name: claim_shards
-- Take those of the wanted shards (NULL: of all) whose owner has let its term run out. Whoever holds one does not
-- want it: a term that nobody else took is good, and renewed. A row that somebody holds, as the old owner's last
-- statement does, is passed over, so that it holds up no other; the caller comes again. Whatever the old owner
-- writes afterwards finds another term and writes nothing. The new term begins when the row is got.
-- Beside them, those that the caller knows to be unrenewed, or their owners to be dead, unless they were renewed since; and those in
-- degraded mode: who stands in gives way to an owner at once, however long its term would last.
-- Whoever passes calls on to the owner hears of the new one.
WITH free AS MATERIALIZED (
    SELECT shard, expires_at = '-infinity' AS was_handed_over, owner AS last_owner FROM shards
    WHERE (expires_at < now() OR degraded_term = term
           OR (shard, expires_at) IN (SELECT * FROM unnest(:unrenewed::int[], :ends::timestamptz[])))
      AND (:wanted::int[] IS NULL OR shard = ANY(:wanted::int[]))
      AND NOT EXISTS (SELECT FROM tenant_moves AS moves WHERE moves.to_shard = shards.shard AND moves.finished_at IS NULL)
    ORDER BY shard FOR UPDATE OF shards SKIP LOCKED
), taken AS (
    UPDATE shards SET term = term + 1, owner = :owner, owner_url = :owner_url,
                      expires_at = clock_timestamp() + :term_time::interval
    FROM free WHERE shards.shard = free.shard
    RETURNING shards.shard, shards.term, free.was_handed_over, free.last_owner
)
SELECT shard, term, was_handed_over, last_owner, pg_notify(:channel, '') FROM taken

-- name: unowned_shards
-- Those whose owner is gone, or for whom somebody stands in.
SELECT shard FROM shards WHERE (expires_at < now() OR degraded_term = term)
AND NOT EXISTS (SELECT FROM tenant_moves AS moves WHERE moves.to_shard = shards.shard AND moves.finished_at IS NULL) ORDER BY shard

-- name: stand_in
-- As `claim_shards`, for a server that does not own: of these shards those that nobody has. The term says
-- for itself that it is one of degraded mode; whatever claims the shard later, by whichever build, ends that.
WITH free AS MATERIALIZED (
    SELECT shard FROM shards WHERE shard = ANY(:wanted::int[]) AND expires_at < now()
      AND NOT EXISTS (SELECT FROM tenant_moves AS moves WHERE moves.to_shard = shards.shard AND moves.finished_at IS NULL)
    ORDER BY shard FOR UPDATE OF shards SKIP LOCKED
), taken AS (
    UPDATE shards SET term = term + 1, degraded_term = term + 1, owner = :owner, owner_url = :owner_url,
                      expires_at = clock_timestamp() + :term_time::interval
    FROM free WHERE shards.shard = free.shard
    RETURNING shards.shard, shards.term
)
SELECT shard, term, pg_notify(:channel, '') FROM taken

-- name: renew_shards
-- From the moment that a row is held, not from the one it was asked: what was renewed is in force. A row that
-- somebody else holds is passed over: it alone is not renewed, and the answer says that it is still ours.
WITH held AS MATERIALIZED (
    SELECT shard, term, is_open
    FROM unnest(:shards::int[], :terms::bigint[], :opened::boolean[]) AS held (shard, term, is_open)
), mine AS MATERIALIZED (
    SELECT shards.shard, held.is_open FROM shards
    JOIN held ON shards.shard = held.shard AND shards.term = held.term
    ORDER BY shards.shard FOR NO KEY UPDATE OF shards SKIP LOCKED
), renewed AS (
    UPDATE shards SET expires_at = clock_timestamp() + :term_time::interval,
                      opened_term = CASE WHEN mine.is_open THEN shards.term ELSE shards.opened_term END
    FROM mine WHERE shards.shard = mine.shard
    RETURNING shards.shard
)
SELECT shards.shard, shards.term, renewed.shard IS NOT NULL AS is_renewed
FROM shards JOIN held ON shards.shard = held.shard AND shards.term = held.term
LEFT JOIN renewed ON renewed.shard = shards.shard

-- name: beat
-- We are there until a term from now; answers who is, ourselves among them. One whose heartbeat had run out
-- begins anew. An end that lies further ahead than anybody would write was written by a clock that went back.
WITH beat AS (
    INSERT INTO servers AS known (name, url, owns_shards, is_leaving, since, seen_at, expires_at, process_group, busy_per_mille)
    VALUES (:name, :url, :owns_shards, :is_leaving, clock_timestamp(), clock_timestamp(),
            clock_timestamp() + :term_time::interval, :process_group, :busy_per_mille)
    ON CONFLICT (name) DO UPDATE SET
        url = excluded.url, owns_shards = excluded.owns_shards, is_leaving = excluded.is_leaving,
        since = CASE WHEN known.since <= excluded.seen_at AND known.expires_at >= excluded.seen_at
                     THEN known.since ELSE excluded.since END,
        seen_at = excluded.seen_at, expires_at = excluded.expires_at,
        process_group = excluded.process_group, busy_per_mille = excluded.busy_per_mille
    RETURNING name, url, owns_shards, is_leaving, since, seen_at, process_group, busy_per_mille
), there AS (
    SELECT name, url, owns_shards, is_leaving, since, seen_at, process_group, busy_per_mille FROM beat
    UNION ALL
    (SELECT name, url, owns_shards, is_leaving, since, seen_at, process_group, busy_per_mille FROM servers
     WHERE expires_at >= now() AND expires_at < now() + :far_time::interval AND name <> :name
     ORDER BY seen_at DESC LIMIT :servers_max)
)
SELECT name, url, owns_shards, is_leaving, seen_at - since >= :settle_time::interval AS is_settled,
       seen_at >= clock_timestamp() - :late_time::interval AS is_prompt, process_group, busy_per_mille,
       clock_timestamp() AS now
FROM there

-- name: leave
-- This server stops: nobody counts on it any more.
DELETE FROM servers WHERE name = :name

-- name: forget_servers
DELETE FROM servers WHERE expires_at < now() - :kept::interval

-- name: forget_lost_sessions
-- Upkeep: what servers left behind that are gone, or do not own any more; whoever took over has rows of its own.
WITH by_server AS (
    DELETE FROM worker_sessions WHERE seen_at < now() - :kept::interval
    RETURNING 1
), by_shard AS (
    DELETE FROM sessions WHERE seen_at < now() - :kept::interval
    RETURNING 1
)
SELECT (SELECT count(*) FROM by_server) + (SELECT count(*) FROM by_shard) AS gone

-- name: read_shards
SELECT shard, term, owner, owner_url, expires_at >= now() AS has_owner,
       (expires_at < now() OR degraded_term = term)
       AND NOT EXISTS (SELECT FROM tenant_moves AS moves WHERE moves.to_shard = shards.shard AND moves.finished_at IS NULL) AS is_free,
       opened_term = term AS is_open,
       -- Later than anybody would write now: the clock was ahead when it was written.
       CASE WHEN expires_at > now() + :far_time::interval THEN expires_at END AS overlong_until,
       CASE WHEN expires_at >= now() THEN expires_at END AS ends_at
FROM shards ORDER BY shard

-- name: known_servers
SELECT name FROM servers LIMIT 10000

-- name: count_open
-- Shards whose owner gives jobs out, as far as it is known: an owner of the build before does not tell.
SELECT count(*) FROM shards
WHERE expires_at >= now() AND (opened_term = term OR shard = ANY(:here::int[]) OR owner <> ALL(:known::text[]))

-- name: release_shards
-- A clean stop hands over at once, and whoever waits for a shard hears of it. With every lease written down,
-- as '-infinity' says, the next owner need not ask the workers what they run. A row that somebody else holds is
-- passed over: whoever lets go has other shards to renew. Answers what is ours by its term, and whether it is gone.
WITH held AS MATERIALIZED (
    SELECT shard, term, all_written
    FROM unnest(:shards::int[], :terms::bigint[], :all_written::boolean[]) AS held (shard, term, all_written)
), mine AS MATERIALIZED (
    SELECT shards.shard, held.all_written FROM shards
    JOIN held ON shards.shard = held.shard AND shards.term = held.term
    ORDER BY shards.shard FOR NO KEY UPDATE OF shards SKIP LOCKED
), gone AS (
    UPDATE shards SET expires_at = CASE WHEN mine.all_written THEN '-infinity' ELSE now() - interval '1 second' END
    FROM mine WHERE shards.shard = mine.shard
    RETURNING shards.shard
)
SELECT held.shard, gone.shard IS NOT NULL AS is_gone,
       CASE WHEN gone.shard IS NOT NULL THEN pg_notify(:channel, '')::text END AS told
FROM shards JOIN held ON shards.shard = held.shard AND shards.term = held.term
LEFT JOIN gone ON gone.shard = held.shard

-- name: write_rates
-- What the next owner of each shard is to know; only the owner's word counts. A row that somebody holds is passed
-- over: who lets go of many must not wait for one.
INSERT INTO rate_windows AS known (shard, term, saved_at, windows)
SELECT saved.shard, saved.term, now(), saved.windows
FROM unnest(:shards::int[], :terms::bigint[], :windows::bytea[]) AS saved (shard, term, windows)
WHERE EXISTS (SELECT FROM shards WHERE shards.shard = saved.shard AND shards.term = saved.term FOR KEY SHARE SKIP LOCKED)
ON CONFLICT (shard) DO UPDATE SET term = excluded.term, saved_at = excluded.saved_at, windows = excluded.windows

-- name: read_rates
SELECT shard, term, windows, (extract(epoch FROM now() - saved_at) * 1000000)::bigint AS ago_us
FROM rate_windows WHERE shard = ANY(:shards::int[])

-- name: read_owners
SELECT shard, term, owner, owner_url FROM shards WHERE expires_at >= now()

-- name: database_now
SELECT clock_timestamp() AS now

-- name: tell_owners
SELECT pg_notify(:channel, '') AS told

-- name: count_shards
SELECT coalesce(shards, shard_count) AS shards FROM cluster
