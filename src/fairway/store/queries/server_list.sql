-- name: list_servers
-- Servers that are there, or were in the last hour, with the shards whose terms last; and owners of a build that
-- has no heartbeat. By the database's clock.
WITH owned AS (
    SELECT owner, max(owner_url) AS url, count(*) AS shards, count(*) FILTER (WHERE opened_term = term) AS open_shards,
           count(*) FILTER (WHERE degraded_term = term) AS stood_in, max(term) AS newest_term
    FROM shards WHERE expires_at >= now() GROUP BY owner
)
SELECT coalesce(known.name, owned.owner) AS name, coalesce(known.url, owned.url) AS url,
       coalesce(known.owns_shards, true) AS owns_shards, coalesce(known.is_leaving, false) AS is_leaving,
       coalesce(known.expires_at >= now(), true) AS is_there, known.since,
       extract(epoch FROM clock_timestamp() - known.seen_at)::float8 AS silent_seconds,
       coalesce(owned.shards, 0) AS shards, coalesce(owned.open_shards, 0) AS open_shards,
       coalesce(owned.stood_in, 0) AS stood_in, owned.newest_term, coalesce(known.process_group <> '', false) AS shares_work
FROM servers AS known FULL JOIN owned ON owned.owner = known.name
ORDER BY is_there DESC, name LIMIT :servers_max
