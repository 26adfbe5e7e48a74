-- A long row of flows is given up in parts: ends of members that are still to be counted.
ALTER TABLE flows
    ADD COLUMN owed         int         NOT NULL DEFAULT 0;   -- members that were given up and are not counted yet
CREATE INDEX flows_owed ON flows (shard, tenant) WHERE owed > 0;
