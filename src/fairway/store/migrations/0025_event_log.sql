-- One log of events for each tenant: written with what happened, put in order by the owner of the shard.

ALTER TABLE tenants ADD COLUMN job_events boolean NOT NULL DEFAULT false;
ALTER TABLE jobs ADD COLUMN events boolean;

-- Where events come in, in the transaction of what happened; no lock, no order between transactions. They stay for a moment.
CREATE TABLE event_inbox (
    shard        int         NOT NULL,
    tenant       int         NOT NULL,
    id           bigint      GENERATED ALWAYS AS IDENTITY,
    at           timestamptz NOT NULL DEFAULT now(),
    kind         text        NOT NULL,
    job          uuid,
    type         int,                                     -- of the job; a notice has a subject instead
    subject      text,
    detail       text,                                    -- a sentence, of a notice
    state        smallint,                                -- the job's, as it became
    attempt      smallint,
    pool         smallint,
    ran_us       bigint,
    due_at       timestamptz,
    PRIMARY KEY (shard, tenant, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0
);

-- The position of each tenant's newest event.
CREATE TABLE event_heads (
    shard        int         NOT NULL,
    tenant       int         NOT NULL,
    last         bigint      NOT NULL,
    PRIMARY KEY (shard, tenant)
) WITH (fillfactor = 50);

-- Chunks of events in order, in days of their own by when they were written, so that old ones go as a whole.
CREATE TABLE event_log (
    shard           int         NOT NULL,
    tenant          int         NOT NULL,
    first_position  bigint      NOT NULL,                 -- 1, 2, 3 … within the tenant, without gaps
    last_position   bigint      NOT NULL,
    written_at      timestamptz NOT NULL DEFAULT now(),
    events          bytea       NOT NULL,                 -- JSON text of a list
    PRIMARY KEY (shard, tenant, last_position, written_at),
    CONSTRAINT events_have_an_order CHECK (first_position BETWEEN 1 AND last_position)
) PARTITION BY RANGE (written_at);

-- What became of a job whose events somebody wants. One that is carried to another partition was not accepted again.
CREATE FUNCTION note_job_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    what text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF current_setting('fairway.carrying', true) = 'on' THEN
            RETURN NULL;
        END IF;
        what := 'job.accepted';
    ELSIF NEW.state = OLD.state AND NEW.epoch = OLD.epoch THEN
        RETURN NULL;                                      -- written again, and the same
    ELSE
        what := CASE NEW.state
            WHEN 2 THEN 'job.started'
            WHEN 3 THEN 'job.succeeded'
            WHEN 4 THEN 'job.dead'
            WHEN 5 THEN 'job.cancelled'
            WHEN 6 THEN 'job.expired'
            ELSE CASE
                WHEN OLD.state >= 3 THEN 'job.replayed'
                WHEN NEW.attempts > OLD.attempts OR NEW.failures IS DISTINCT FROM OLD.failures THEN 'job.retrying'
                WHEN OLD.state = 0 THEN 'job.queued'
                ELSE 'job.requeued'
            END
        END;
    END IF;
    INSERT INTO event_inbox (shard, tenant, kind, job, type, state, attempt, pool, ran_us, due_at)
    VALUES (NEW.shard, NEW.tenant, what, NEW.id, NEW.type, NEW.state,
            CASE WHEN NEW.state = 2 THEN least(NEW.attempts + 1, 32767) ELSE NEW.attempts END, NEW.pool,
            CASE WHEN NEW.state <> 2 AND (OLD.state = 2 OR NEW.epoch <> OLD.epoch) THEN NEW.ran_us END,  -- a run ended
            CASE WHEN NEW.state = 0 AND NEW.execute_at < '9999-01-01 00:00+00' THEN NEW.execute_at END);
    RETURN NULL;
END $$;

CREATE TRIGGER note_accepted AFTER INSERT ON jobs
    FOR EACH ROW WHEN (NEW.events) EXECUTE FUNCTION note_job_event();
CREATE TRIGGER note_changed AFTER UPDATE OF state ON jobs
    FOR EACH ROW WHEN (NEW.events) EXECUTE FUNCTION note_job_event();

ALTER TABLE event_inbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE event_heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE event_log   ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON event_inbox USING (tenant = current_tenant());
CREATE POLICY of_tenant ON event_heads USING (tenant = current_tenant());
CREATE POLICY of_tenant ON event_log   USING (tenant = current_tenant());

-- What tenants were told of late goes on to be told, under the kinds of now. The table itself stays for this version: servers
-- of the one before still write to it while they are replaced. Nobody reads it any more.
INSERT INTO event_inbox (shard, tenant, at, kind, subject, detail)
SELECT old.tenant % cluster.shard_count, old.tenant, old.at, CASE old.kind
           WHEN 'dependency_circuit_open' THEN 'circuit.opened'
           WHEN 'dependency_circuit_closed' THEN 'circuit.closed'
           WHEN 'quarantine_imposed' THEN 'quarantine.imposed'
           WHEN 'quarantine_lifted' THEN 'quarantine.lifted'
           WHEN 'recycling_throttled' THEN 'recycling.throttled'
           WHEN 'recycling_throttle_lifted' THEN 'recycling.restored'
           WHEN 'checkpoint_missing' THEN 'checkpoint.missing'
           WHEN 'checkpoint_lost' THEN 'checkpoint.lost'
           WHEN 'pool_violation' THEN 'pool.violated'
           WHEN 'job_type_moved' THEN 'type.reclassified'
           WHEN 'late_execution' THEN 'job.late'
           WHEN 'committed_jobs_refused' THEN 'outbox.refused'
           ELSE old.kind
       END, old.subject, old.detail
FROM (SELECT * FROM events ORDER BY at DESC LIMIT 10000) AS old, cluster
ORDER BY old.id;
