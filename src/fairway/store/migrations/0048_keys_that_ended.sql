-- serves servers from 0047 on
-- Every server asks every two seconds which keys were revoked or ran out: without these it read all keys. Most have neither.
CREATE INDEX api_keys_revoked ON api_keys (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE INDEX api_keys_expires ON api_keys (expires_at) WHERE expires_at IS NOT NULL;
