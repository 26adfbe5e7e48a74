-- Which trace a job belongs to, so that what becomes of it is seen there: trace id, span id and flags of W3C trace context.
ALTER TABLE jobs ADD COLUMN trace bytea;                   -- NULL: it belongs to none

-- The same for what is told of the job.
ALTER TABLE webhook_deliveries ADD COLUMN trace bytea;
