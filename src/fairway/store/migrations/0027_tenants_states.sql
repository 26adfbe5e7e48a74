-- Tenants that are suspended or deleted, and workers' keys that serve some tenants only.
ALTER TABLE tenants
    ADD COLUMN state           text        NOT NULL DEFAULT 'active'
        CONSTRAINT tenants_state_check CHECK (state IN ('active', 'suspended', 'deleted')),
    ADD COLUMN reason          text        NOT NULL DEFAULT '',
    ADD COLUMN cancels_running boolean     NOT NULL DEFAULT false,
    ADD COLUMN state_since     timestamptz;

ALTER TABLE api_keys ADD COLUMN only_tenants int[];
CREATE INDEX api_keys_tenant ON api_keys (tenant);
