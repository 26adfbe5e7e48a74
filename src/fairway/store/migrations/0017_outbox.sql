-- Jobs that a tenant hands in with a transaction of its own: there when that commits, gone when it rolls back. The owner of
-- the shard moves them to `jobs`, tenant by tenant. Nothing reads this table but that move.
CREATE TABLE outbox (
    shard        int         NOT NULL,
    tenant       int         NOT NULL,
    id           uuid        NOT NULL,                    -- the job's, made by the function below
    request      text        NOT NULL,                    -- as the body of POST /v1/jobs
    refused_at   timestamptz,                             -- it was set aside, and will not be moved
    reason       text,                                    -- why
    PRIMARY KEY (shard, tenant, id),
    CONSTRAINT a_refusal_has_its_reason CHECK ((refused_at IS NULL) = (reason IS NULL))
) WITH (                                                  -- rows stay for a moment
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX outbox_waiting ON outbox (shard, tenant, id) WHERE refused_at IS NULL;

-- Which login of the database hands jobs in, and whose they are: PostgreSQL vouches for the login.
CREATE TABLE sql_logins (
    login        text        PRIMARY KEY,
    tenant       int         NOT NULL REFERENCES tenants (id),
    is_full      boolean     NOT NULL DEFAULT false,      -- so much of the tenant's waits that no more is taken
    created_at   timestamptz NOT NULL DEFAULT now()
);

ALTER TABLE outbox     ENABLE ROW LEVEL SECURITY;
ALTER TABLE sql_logins ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON outbox     USING (tenant = current_tenant());
CREATE POLICY of_tenant ON sql_logins USING (tenant = current_tenant());

CREATE SEQUENCE outbox_order AS int MINVALUE 0 MAXVALUE 1048575 CYCLE;  -- keeps jobs of one millisecond in order

-- Hands a job in; answers its id. With the rights of the tables' owner, for whoever `sql_logins` names and for that tenant alone.
CREATE FUNCTION fairway_enqueue(request text) RETURNS text
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
DECLARE
    bytes_max  CONSTANT int := 65536;
    whose      record;
    job        uuid;
BEGIN
    SELECT l.tenant, l.is_full, l.tenant % c.shard_count AS shard INTO whose
    FROM sql_logins AS l, cluster AS c WHERE l.login = session_user;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'The login % may not hand jobs in.', quote_ident(session_user)
            USING ERRCODE = 'insufficient_privilege',
                  HINT = format('Let an operator run: fairway sql-login TENANT %s', session_user);
    END IF;
    IF whose.is_full THEN
        RAISE EXCEPTION 'Too many of your jobs wait to be let in; no more are taken for now.'
            USING ERRCODE = 'configuration_limit_exceeded',
                  HINT = 'They come in at the rate of your tier; try again later.';
    END IF;
    IF octet_length(request) > bytes_max THEN
        RAISE EXCEPTION 'This job has % bytes; in a transaction at most % are taken.', octet_length(request), bytes_max
            USING ERRCODE = 'program_limit_exceeded',
                  HINT = 'Keep what is large in a table or in object storage, and hand in where it is.';
    END IF;
    IF jsonb_typeof(request::jsonb -> 'type') IS DISTINCT FROM 'string' THEN
        RAISE EXCEPTION 'A job is a JSON object with a type, as the body of POST /v1/jobs.'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Such as {"type": "email.send", "payload": {"to": "ada"}}.';
    END IF;
    -- A UUIDv7 by the database's clock: milliseconds, the shard, a counter, chance (core/ids.py).
    job := encode(
        substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
        || int2send((28672 + whose.shard)::smallint)
        || int8send((-9223372036854775808)::bigint | (nextval('outbox_order') << 42) | floor(random() * 4398046511104)::bigint),
        'hex')::uuid;
    INSERT INTO outbox (shard, tenant, id, request) VALUES (whose.shard, whose.tenant, job, request);
    PERFORM pg_notify('fairway_outbox', '');
    RETURN job::text;
END $$;

-- Whoever calls it must not choose which tables it means.
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION fairway_enqueue(text) SET search_path = %I, pg_temp', current_schema());
END $$;
REVOKE ALL ON FUNCTION fairway_enqueue(text) FROM PUBLIC;
