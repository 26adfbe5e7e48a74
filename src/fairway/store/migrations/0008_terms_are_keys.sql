-- The term is part of a key: whoever holds the row FOR KEY SHARE keeps it from changing, and a renewal,
-- which changes no key, need not wait for him.

ALTER TABLE shards ADD CONSTRAINT shards_term UNIQUE (shard, term);
