-- Limits of a tenant's own, by key: a job carries those it was submitted with.
ALTER TABLE jobs ADD COLUMN limits bytea;                  -- by key, as JSON; NULL: it has none
