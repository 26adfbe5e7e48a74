-- Jobs that runs start. Where a job's children are follows from its own row, so there is no index for them.
ALTER TABLE jobs
    ADD COLUMN parent       uuid,                         -- whose run started it; NULL: none did
    ADD COLUMN children     int,                          -- how many its success started; NULL: none
    ADD COLUMN children_ms  bigint;                       -- the moment in their ids (core/run/follow_ups.py)
