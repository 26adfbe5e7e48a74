-- Flows: jobs that wait for others. A job knows which flows count its end; a flow knows who waits for it.
ALTER TABLE jobs
    ADD COLUMN flows        uuid[];                       -- which flows count how it ends; NULL: it is in none

CREATE TABLE flows (
    shard        int         NOT NULL,
    tenant       int         NOT NULL,
    id           uuid        NOT NULL,
    kind         smallint    NOT NULL CHECK (kind BETWEEN 0 AND 2),   -- group, chain, link
    needs        smallint    NOT NULL CHECK (needs BETWEEN 0 AND 1),  -- that all succeed; that all end
    is_open      boolean     NOT NULL,                    -- more members are to come
    members      int         NOT NULL CHECK (members >= 0),
    succeeded    int         NOT NULL DEFAULT 0,
    failed       int         NOT NULL DEFAULT 0,          -- dead: a replay takes one off again
    cancelled    int         NOT NULL DEFAULT 0,          -- or expired: it will never succeed
    waiting      uuid[]      NOT NULL,                    -- jobs that start when it is complete
    source       uuid,                                    -- whose result is handed on to them
    argument     text,                                    -- and as which of their arguments
    last_failed  uuid,                                    -- an example of what went wrong
    created_at   timestamptz NOT NULL DEFAULT now(),
    finished_at  timestamptz,                             -- since when no member is under way
    PRIMARY KEY (shard, tenant, id),
    CONSTRAINT ends_are_of_members CHECK (
        succeeded >= 0 AND failed >= 0 AND cancelled >= 0 AND succeeded + failed + cancelled <= members
    )
) WITH (fillfactor = 50);                                 -- counters change often, and in place
CREATE INDEX flows_created ON flows (shard, created_at);

ALTER TABLE flows ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON flows USING (tenant = current_tenant());
