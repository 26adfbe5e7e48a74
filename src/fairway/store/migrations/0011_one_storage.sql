-- The database knows the marker of its object storage, so that a server with another one is found out.
ALTER TABLE cluster ADD COLUMN storage_marker text;       -- set by the first server that opens its storage
