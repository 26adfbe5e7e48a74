-- Several regions: which one this store belongs to, who is the directory, and whose home is where.

-- One row, once a server that knows its region has come.
CREATE TABLE region_state (
    is_one         boolean     PRIMARY KEY DEFAULT true CHECK (is_one),
    region         text        NOT NULL,                  -- a store belongs to one for good
    directory      text        NOT NULL,                  -- where tenants, tiers, keys and homes are changed
    directory_term bigint      NOT NULL,                  -- grows with every change of that
    known_until    timestamptz NOT NULL DEFAULT '-infinity', -- by the directory's clock: all changes up to here are in this store
    pulled_at      timestamptz NOT NULL DEFAULT '-infinity', -- a server of this region began to ask for more
    conflicts      int         NOT NULL DEFAULT 0         -- tenants of the directory whose name or number is another's here
) WITH (fillfactor = 50);

-- A tenant without a row is at home in the directory.
CREATE TABLE tenant_homes (
    tenant         int         PRIMARY KEY,
    region         text        NOT NULL,
    term           bigint      NOT NULL,                  -- grows with every move
    directory_term bigint      NOT NULL,                  -- under which it was said; counts before the term
    came_from      text,                                  -- whom a failover took it from; NULL: it was not one
    changed_at     timestamptz NOT NULL DEFAULT now()     -- in this store
);
CREATE INDEX tenant_homes_changed ON tenant_homes (changed_at);

ALTER TABLE tenant_homes ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON tenant_homes USING (tenant = current_tenant());

-- Other regions ask for what changed; so far only the making of keys was dated, and their end.
ALTER TABLE api_keys ADD COLUMN changed_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX api_keys_changed ON api_keys (changed_at);
