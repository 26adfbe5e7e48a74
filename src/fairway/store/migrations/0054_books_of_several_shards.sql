-- serves servers from 0047 on
-- Ends of runs are logged for billing by book, of which there are eight, and no longer by shard: a group of fifty ends wrote a
-- row for each of some 34 shards (decision 0091). What servers of the build before log by shard is rolled up as ever.
CREATE FUNCTION book_of(shard int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN shard % 8;
