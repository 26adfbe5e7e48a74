-- Runs that a bulk action only asked to stop are counted apart from what it did.
ALTER TABLE bulk_actions ADD COLUMN asked_to_stop bigint NOT NULL DEFAULT 0;
