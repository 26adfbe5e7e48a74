-- A unique job may take the place of one that waits: since when the first of such a series waits. NULL: it is the first.
ALTER TABLE unique_jobs ADD COLUMN since timestamptz;
