-- Servers share the shards among them. A server of the build before has no row here: nobody hands it shards,
-- and whatever it owns counts as open.
CREATE TABLE servers (
    name        text        PRIMARY KEY,
    url         text        NOT NULL,
    owns_shards boolean     NOT NULL,
    is_leaving  boolean     NOT NULL,                     -- about to stop: it gets no more shards
    since       timestamptz NOT NULL,                     -- it has been there without a gap
    seen_at     timestamptz NOT NULL,                     -- its last heartbeat, by the database's clock
    expires_at  timestamptz NOT NULL                      -- it counts as dead from here on
) WITH (fillfactor = 50);

ALTER TABLE shards ADD COLUMN opened_term bigint NOT NULL DEFAULT 0;
