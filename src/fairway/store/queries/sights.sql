-- name: tell_sight
-- What this server sees, in place of what it saw before.
INSERT INTO insight_servers (server, told_at, sight) VALUES (:server, now(), :sight)
ON CONFLICT (server) DO UPDATE SET told_at = excluded.told_at, sight = excluded.sight

-- name: other_sights
-- What the other servers see, if they said so of late.
SELECT sight FROM insight_servers
WHERE server <> :server AND told_at > now() - interval '15 seconds'
ORDER BY told_at DESC LIMIT :limit

-- name: forget_sights
-- Servers that said nothing for long: each start of one has a name of its own.
DELETE FROM insight_servers WHERE told_at < now() - interval '10 minutes'
