"""A database that was just read back from a backup, before any server uses it.

It goes on where the original was at that moment. What must not happen twice is put right here, in
one transaction: positions of events, and for a copy beside the original whatever reaches out.
"""

from __future__ import annotations

from fairway.store.connections.database import Connection, execute
from fairway.store.sql import load

_SQL = load("restored.sql")

#: More than any tenant's events between a backup and the loss of what it was made of.
EVENT_GAP = 1_000_000_000


async def is_empty(connection: Connection) -> bool:
    """Whether nobody's tables are here."""
    found: bool = await connection.fetchval(
        "SELECT NOT EXISTS (SELECT FROM pg_class WHERE relkind IN ('r', 'p')"
        " AND relnamespace = current_schema()::regnamespace)"
    )
    return found


async def make_ready(connection: Connection, *, as_copy: bool) -> None:
    async with connection.transaction():
        await execute(connection, _SQL["move_events_on"], gap=EVENT_GAP)
        if as_copy:
            await execute(connection, _SQL["hush_webhooks"])
            await execute(connection, _SQL["pause_schedules"])
            await execute(connection, _SQL["untie_storage"])
    await connection.execute("ANALYZE")  # a dump has no statistics, and plans follow from them
