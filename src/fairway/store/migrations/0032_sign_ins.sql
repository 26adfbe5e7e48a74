-- What browsers show in place of a key: sessions of the dashboard, and links that open one, once.
CREATE TABLE sign_ins (
    token_hash  bytea       PRIMARY KEY,                  -- SHA-256
    kind        text        NOT NULL CHECK (kind IN ('session', 'link')),
    key_id      text        NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL
);
CREATE INDEX sign_ins_of_key ON sign_ins (key_id, kind, created_at);
CREATE INDEX sign_ins_expires ON sign_ins (expires_at);
