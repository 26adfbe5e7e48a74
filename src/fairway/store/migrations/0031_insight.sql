-- What servers saw: history for graphs by the minute and the hour, and each server's latest look.

-- What one server counted in a minute, of a pool (kind 1), a job type (2), a tenant (3) or a tenant's type (4). A tenant
-- of 0 is everybody, a type without a name all that have no line of their own.
CREATE TABLE insight_minutes (
    kind       smallint    NOT NULL,
    tenant     int         NOT NULL,
    name       text        NOT NULL,
    at         timestamptz NOT NULL,                      -- the beginning of the minute
    server     text        NOT NULL,
    accepted   bigint      NOT NULL,
    started    bigint      NOT NULL,
    succeeded  bigint      NOT NULL,
    failed     bigint      NOT NULL,
    retried    bigint      NOT NULL,
    dead       bigint      NOT NULL,
    queued     bigint,                                    -- NULL, as in the next: not known
    running    bigint,
    slots      bigint,
    oldest_ms  bigint,
    pickup     int[]       NOT NULL,                      -- counts by bucket (core/insight/buckets.py)
    run        int[]       NOT NULL,
    PRIMARY KEY (kind, tenant, name, at, server)
);
CREATE INDEX insight_minutes_at ON insight_minutes (at);

-- The same, added up by the hour. Levels are sums over the minutes that have their bit set.
CREATE TABLE insight_hours (
    kind       smallint    NOT NULL,
    tenant     int         NOT NULL,
    name       text        NOT NULL,
    at         timestamptz NOT NULL,
    server     text        NOT NULL,
    minutes    bigint      NOT NULL,
    accepted   bigint      NOT NULL,
    started    bigint      NOT NULL,
    succeeded  bigint      NOT NULL,
    failed     bigint      NOT NULL,
    retried    bigint      NOT NULL,
    dead       bigint      NOT NULL,
    queued     bigint,
    running    bigint,
    slots      bigint,
    oldest_ms  bigint,
    pickup     int[]       NOT NULL,
    run        int[]       NOT NULL,
    PRIMARY KEY (kind, tenant, name, at, server)
) WITH (fillfactor = 70);
CREATE INDEX insight_hours_at ON insight_hours (at);

-- What each server saw last, as JSON text.
CREATE TABLE insight_servers (
    server   text        PRIMARY KEY,
    told_at  timestamptz NOT NULL,
    sight    bytea       NOT NULL
) WITH (fillfactor = 50);

ALTER TABLE insight_minutes ENABLE ROW LEVEL SECURITY;
ALTER TABLE insight_hours   ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON insight_minutes USING (tenant = current_tenant());
CREATE POLICY of_tenant ON insight_hours   USING (tenant = current_tenant());
