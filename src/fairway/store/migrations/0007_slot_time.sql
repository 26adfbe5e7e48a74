-- Slot-time of the runs before the last success: what is billed, and what the platform cut short.

ALTER TABLE jobs
    ADD COLUMN billed_us    bigint,                       -- NULL while none
    ADD COLUMN unbilled_us  bigint;
