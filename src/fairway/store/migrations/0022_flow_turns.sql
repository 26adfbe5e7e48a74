-- Whose flows are being counted: its row is locked meanwhile. An advisory lock could be held by any login.
CREATE TABLE flow_turns (
    shard        int         NOT NULL,
    tenant       int         NOT NULL,
    PRIMARY KEY (shard, tenant)
);
INSERT INTO flow_turns SELECT DISTINCT shard, tenant FROM flows;

ALTER TABLE flow_turns ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON flow_turns USING (tenant = current_tenant());
