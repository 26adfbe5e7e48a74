"""A database that was just read back from a backup, before any server uses it.

It goes on where the original was at that moment. What must not happen twice is put right here, in
one transaction: positions of events, numbers of alarms, terms; and for a copy beside the original
whatever reaches out. Until that is done a mark in the database keeps servers from using it.
"""

from __future__ import annotations

from fairway.store.connections.database import Connection, execute, fetch_value
from fairway.store.sql import load

_SQL = load("restored.sql")

#: More than any tenant's events between a backup and the loss of what it was made of.
EVENT_GAP = 1_000_000_000
#: More than a shard's owners in that time.
TERM_GAP = 100_000


async def is_empty(connection: Connection) -> bool:
    """Whether nobody's tables are here, but for the mark of a restore that was given up."""
    found: bool = await connection.fetchval(
        "SELECT NOT EXISTS (SELECT FROM pg_class WHERE relkind IN ('r', 'p')"
        " AND relname <> 'restore_unfinished' AND relnamespace = current_schema()::regnamespace)"
    )
    return found


async def begin(connection: Connection) -> None:
    """Mark it: what is killed from now on leaves no database that looks as if it were whole."""
    await connection.execute("CREATE TABLE IF NOT EXISTS restore_unfinished ()")


async def make_ready(connection: Connection, *, as_copy: bool) -> None:
    async with connection.transaction():
        await execute(connection, _SQL["move_events_on"], gap=EVENT_GAP)
        await execute(connection, _SQL["move_terms_on"], gap=TERM_GAP)
        await fetch_value(connection, _SQL["move_alarms_on"], gap=EVENT_GAP)
        if as_copy:
            await execute(connection, _SQL["hush_webhooks"])
            await execute(connection, _SQL["pause_schedules"])
            await execute(connection, _SQL["untie_storage"])
        await connection.execute("DROP TABLE restore_unfinished")
    await connection.execute("ANALYZE")  # a dump has no statistics, and plans follow from them
