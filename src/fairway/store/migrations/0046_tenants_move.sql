-- Tenants move between shards while everything runs (decision 0076). Servers of the build before know nothing of these:
-- they never say that they have heard of a move, and so none begins while one of them is there.
ALTER TABLE cluster ADD COLUMN moves bigint NOT NULL DEFAULT 0;         -- asked for so far: who connects learns of all of them
ALTER TABLE tenants ADD COLUMN moving_to int;                           -- nothing of it is taken or started meanwhile
ALTER TABLE tenants ADD COLUMN moved_from int[] NOT NULL DEFAULT '{}';  -- shards that its rows were in before, and ids name

CREATE TABLE tenant_moves (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant       int         NOT NULL,
    from_shard   int         NOT NULL,
    to_shard     int         NOT NULL,                    -- nobody owns it until the move is over
    state        text        NOT NULL DEFAULT 'draining'
                 CHECK (state IN ('draining', 'moving', 'returning', 'done', 'called_off')),
    asked_at     timestamptz NOT NULL DEFAULT now(),
    wait_seconds int         NOT NULL DEFAULT 60,         -- for its runs to end; then it is called off
    cancelled_by text,                                    -- an operator who wants it called off; NULL: nobody
    moving_since timestamptz,
    finished_at  timestamptz,
    rows_moved   bigint      NOT NULL DEFAULT 0,
    note         text        NOT NULL DEFAULT '',         -- a sentence: what it waits for, or why it was called off
    CONSTRAINT what_is_over_has_its_end CHECK ((state IN ('done', 'called_off')) = (finished_at IS NOT NULL))
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX tenant_moves_one_at_a_time ON tenant_moves ((finished_at IS NULL)) WHERE finished_at IS NULL;

-- Servers that know of a move: they take and start nothing of its tenant.
CREATE TABLE tenant_move_hearers (
    move         bigint      NOT NULL,
    server       text        NOT NULL,                    -- its name, as in servers.name
    process      int         NOT NULL,                    -- which the names of all its connections end with
    heard_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (move, server, process)
);

ALTER TABLE tenant_moves ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON tenant_moves USING (tenant = current_tenant());
