"""Writes down every change of every job, and who made it, on one PostgreSQL or on a cluster.

A trigger does, so no code path can forget to. On a distributed store the trace lies with its shard
and is written on its node, which hears nothing of the server's name; it knows which connection of
the coordinator asked, and that one said its name when it was made.
"""

from __future__ import annotations

from typing import Any

from fairway.store.connections.placement import is_distributed

_TABLE = """
CREATE TABLE trace (
    seq bigint GENERATED ALWAYS AS IDENTITY, shard int NOT NULL, at timestamptz NOT NULL,
    job uuid NOT NULL, before smallint, after smallint NOT NULL, epoch bigint NOT NULL,
    attempts int NOT NULL, deliveries int NOT NULL, started timestamptz, term bigint NOT NULL,
    writer text NOT NULL
)
"""
_FUNCTION = """
CREATE FUNCTION trace_job() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE in_force bigint;
BEGIN
    SELECT term INTO in_force FROM shards WHERE shard = NEW.shard;
    INSERT INTO trace (shard, at, job, before, after, epoch, attempts, deliveries, started, term,
                       writer)
    VALUES (NEW.shard, clock_timestamp(), NEW.id, CASE WHEN TG_OP = 'UPDATE' THEN OLD.state END,
            NEW.state, NEW.epoch, NEW.attempts, NEW.deliveries, NEW.started_at, in_force,
            coalesce(current_setting('acceptance.server', true),
                     substring(current_setting('application_name') FROM 'gpid=(\\d+)'), ''));
    RETURN NULL;
END $$
"""
_TRIGGER = """
CREATE TRIGGER trace AFTER INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION trace_job()
"""
_WITH_ITS_SHARD = "SELECT create_distributed_table('trace', 'shard', colocate_with := 'shards')"

#: On the coordinator alone.
_CONNECTIONS = """
SET citus.enable_ddl_propagation = off;
CREATE TABLE connections (process text NOT NULL, since timestamptz NOT NULL, name text NOT NULL);
CREATE FUNCTION connected() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO connections
    SELECT citus_backend_gpid()::text, clock_timestamp(), name
    FROM current_setting('acceptance.server', true) AS name WHERE name <> '';
END $$;
CREATE EVENT TRIGGER connected ON login EXECUTE FUNCTION connected();
RESET citus.enable_ddl_propagation
"""

_CHANGES = """
SELECT seq, extract(epoch FROM at)::float8, job::text, before, after, epoch, attempts, deliveries,
       extract(epoch FROM started)::float8, term, writer FROM trace ORDER BY seq
"""
_WRITERS = "SELECT process, extract(epoch FROM since)::float8, name FROM connections ORDER BY since"


async def begin_trace(connection: Any) -> None:
    """The schema must be there. A node is sent one command at a time."""
    is_cluster = await is_distributed(connection)
    await connection.execute(_TABLE)
    if is_cluster:
        await connection.execute(_WITH_ITS_SHARD)
        await connection.execute(_CONNECTIONS)
    await connection.execute(_FUNCTION)
    await connection.execute(_TRIGGER)


async def read_trace(connection: Any) -> list[tuple[Any, ...]]:
    """Every change in order, with the name of the server that made it last."""
    changes = [tuple(row) for row in await connection.fetch(_CHANGES)]
    if not await is_distributed(connection):
        return changes
    names: dict[str, list[tuple[float, str]]] = {}
    for process, since, name in await connection.fetch(_WRITERS):
        names.setdefault(process, []).append((since, name))
    return [(*change[:-1], _named(names.get(change[-1], []), change[1])) for change in changes]


def _named(connections: list[tuple[float, str]], at: float) -> str:
    """Processes come again under the same number: the last before that moment."""
    return next((name for since, name in reversed(connections) if since <= at), "")
