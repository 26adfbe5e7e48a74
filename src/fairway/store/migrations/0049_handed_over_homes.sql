-- serves servers from 0047 on
-- The home under whose terms all that waited in this store of a tenant was handed over: before that it does not come back to
-- this region (decision 0088). Each region's own; servers of the build before do not write it, so a failback waits for them.
ALTER TABLE tenant_homes ADD COLUMN handed_over_term           bigint;
ALTER TABLE tenant_homes ADD COLUMN handed_over_directory_term bigint;

-- What was sent to a region that gave no answer is looked for apart from what waits: it may be little of very much.
CREATE INDEX held_jobs_offered ON held_jobs (shard, tenant, id) WHERE told IS NULL AND offered_to IS NOT NULL;
