-- serves servers from 0047 on
-- Calls of several jobs are found by the ids that lie in them, apart from the jobs beside them that wait, or left, by themselves:
-- ten thousand of a batch that went to another region had been looked through for each id of its millisecond.
CREATE INDEX held_jobs_calls ON held_jobs (shard, tenant, id) WHERE job_count > 1;
