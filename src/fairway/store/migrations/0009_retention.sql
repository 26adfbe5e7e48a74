-- Retention that nobody notices: what grows and shrinks with every job is vacuumed as it goes.

-- Keys come and go as quickly as jobs do.
ALTER TABLE idempotency SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0
);

-- The few jobs that outlived their partition are found when they are old; partitions need no such index.
CREATE INDEX jobs_carried_finished ON jobs_carried (finished_at);
