-- What a key may do, what it is called, and when it was last used.
ALTER TABLE api_keys
    ADD COLUMN name         text        NOT NULL DEFAULT '',
    ADD COLUMN permissions  text[],
    ADD COLUMN pools        text[],
    ADD COLUMN types        text[],
    ADD COLUMN last_used_at timestamptz;
