-- Shards become more (decision 0070). `cluster.shard_count` stays what it was founded
-- with: it tells the home of every tenant that has no shard of its own.
ALTER TABLE cluster ADD COLUMN shards int;                  -- how many there are now; NULL: as many as at first
ALTER TABLE tenants ADD COLUMN shard int;                   -- where its rows are, from its first; NULL: by its number

-- Hands a job in, as before; the shard of its tenant may be one of its own.
CREATE OR REPLACE FUNCTION fairway_enqueue(request text) RETURNS text
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
DECLARE
    bytes_max  CONSTANT int := 65536;
    whose      record;
    job        uuid;
BEGIN
    SELECT l.tenant, l.is_full, coalesce(t.shard, l.tenant % c.shard_count) AS shard INTO whose
    FROM sql_logins AS l JOIN tenants AS t ON t.id = l.tenant, cluster AS c WHERE l.login = session_user;
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
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION fairway_enqueue(text) SET search_path = %I, pg_temp', current_schema());
END $$;
