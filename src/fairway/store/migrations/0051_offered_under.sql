-- serves servers from 0047 on
-- The home under whose terms a held row was sent: its directory term and its home term. Under newer ones it is asked about
-- before it is sent again. Rows of before, and those that servers of the build before send, are always asked about.
ALTER TABLE held_jobs ADD COLUMN offered_under bigint[] NOT NULL DEFAULT '{-1,-1}';
