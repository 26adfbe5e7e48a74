-- Where tenants want their events sent, and every event on its way there.
CREATE TABLE webhooks (
    shard             int         NOT NULL,
    tenant            int         NOT NULL,
    id                uuid        NOT NULL,
    url               text        NOT NULL,
    kinds             text[]      NOT NULL,               -- of events; none: all
    description       text        NOT NULL,
    enabled           boolean     NOT NULL,
    secret            text        NOT NULL,               -- as it is: it signs; shown once, when it is made
    old_secret        text,                               -- signs beside it while it is replaced
    old_secret_until  timestamptz,
    position          bigint      NOT NULL CHECK (position >= 0),  -- up to which the log is written down below
    tests             bigint      NOT NULL DEFAULT 0,     -- events that were sent to try it out
    failures          int         NOT NULL DEFAULT 0,     -- calls in a row
    failing_since     timestamptz,
    disabled_because  text        NOT NULL DEFAULT '',    -- a sentence, when the platform did
    due_at            timestamptz,                        -- when something of it is to be sent; NULL: nothing is
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shard, tenant, id),
    CONSTRAINT an_old_secret_has_its_end CHECK ((old_secret IS NULL) = (old_secret_until IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX webhooks_due ON webhooks (shard, due_at) WHERE enabled;

CREATE TABLE webhook_deliveries (
    shard        int         NOT NULL,
    tenant       int         NOT NULL,
    webhook      uuid        NOT NULL,
    number       bigint      NOT NULL,                    -- the event's position; below zero: a test
    kind         text        NOT NULL,
    body         bytea       NOT NULL,                    -- what is sent
    state        smallint    NOT NULL CHECK (state BETWEEN 0 AND 2),  -- waiting, delivered, failed
    attempts     smallint    NOT NULL DEFAULT 0,
    next_at      timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_at      timestamptz,
    last_status  smallint,                                -- of the receiver's reply
    last_error   text        NOT NULL DEFAULT '',
    PRIMARY KEY (shard, tenant, webhook, number),
    CONSTRAINT what_waits_has_its_time CHECK ((state = 0) = (next_at IS NOT NULL))
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (shard, tenant, webhook, next_at) WHERE state = 0;
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (shard, tenant, webhook, created_at, number);
CREATE INDEX webhook_deliveries_created ON webhook_deliveries (shard, created_at);

ALTER TABLE webhooks           ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_deliveries ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON webhooks           USING (tenant = current_tenant());
CREATE POLICY of_tenant ON webhook_deliveries USING (tenant = current_tenant());
