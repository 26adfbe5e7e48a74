-- Degraded mode: a server that does not own shards stands in for an owner, under a term that says so. A
-- server of the build before claims such a shard as any other: its new term is not this one.
ALTER TABLE shards ADD COLUMN degraded_term bigint NOT NULL DEFAULT 0;
