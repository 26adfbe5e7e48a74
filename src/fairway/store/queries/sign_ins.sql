-- name: add_sign_in
INSERT INTO sign_ins (token_hash, kind, key_id, expires_at)
VALUES (:token_hash, :kind, :key_id, now() + :lasts::interval)
RETURNING expires_at

-- name: drop_oldest
-- Of one key and kind the newest stay; whoever adds one holds the key's row.
DELETE FROM sign_ins WHERE token_hash IN (
    SELECT token_hash FROM sign_ins WHERE key_id = :key_id AND kind = :kind
    ORDER BY created_at DESC, token_hash OFFSET :kept
)

-- name: drop_lapsed
-- Some of those that ran out a day ago, of whatever key. Those who do it at once pass each other by.
DELETE FROM sign_ins WHERE token_hash IN (
    SELECT token_hash FROM sign_ins WHERE expires_at < now() - interval '1 day'
    ORDER BY expires_at LIMIT :limit FOR UPDATE SKIP LOCKED
)

-- name: read_session
-- Also one that ran out a while ago: whoever shows it does not guess.
SELECT key_id, expires_at FROM sign_ins WHERE token_hash = :token_hash AND kind = 'session'

-- name: living_sessions
-- Those of these that still open something: neither they nor their keys have ended.
SELECT sign_ins.token_hash FROM sign_ins JOIN api_keys ON api_keys.id = sign_ins.key_id
WHERE sign_ins.token_hash = ANY(:hashes::bytea[]) AND sign_ins.expires_at > now()
  AND api_keys.revoked_at IS NULL AND (api_keys.expires_at IS NULL OR api_keys.expires_at > now())

-- name: end_session
DELETE FROM sign_ins WHERE token_hash = :token_hash AND kind = 'session'

-- name: take_link
-- A link opens one session: of two who come with it, one finds it.
DELETE FROM sign_ins WHERE token_hash = :token_hash AND kind = 'link' AND expires_at > now()
RETURNING key_id
