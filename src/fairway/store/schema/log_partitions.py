"""Days of what is only added and read: made ahead of time, dropped whole when past retention.

What runs said, and tenants' logs of events. Nothing waits for them as jobs do for theirs, and no
row lives on: a day that is over is dropped. A line that finds no day is refused, and lost; an event
that finds none stays in its inbox. The tables are made ready whenever a server starts.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias, get_args

from fairway.store.connections.database import Connection
from fairway.store.schema.partitions import making

DAY = timedelta(days=1)
AHEAD = 3

InDays: TypeAlias = Literal["job_logs", "event_log"]


async def make_log_days(connection: Connection, now: datetime) -> list[str]:
    """Yesterday, today and the next few; answers the names of those that were new."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    made: list[str] = []
    for table in get_args(InDays):
        have = await _existing(connection, table)
        for begins in (today + DAY * offset for offset in range(-1, AHEAD)):
            name = f"{table}_{begins:%Y%m%d}"
            if name not in have:
                await _make(connection, table, name, begins)
                made.append(name)
    return made


async def _make(connection: Connection, table: str, name: str, begins: datetime) -> None:
    async with making(connection):
        await connection.execute(
            f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {table}"
            f" FOR VALUES FROM ('{begins.isoformat()}') TO ('{(begins + DAY).isoformat()}')"
        )


async def drop_log_days(connection: Connection, table: InDays, keep_since: datetime) -> list[str]:
    """Days that ended before then; answers the names of those that are gone."""
    gone = []
    for name in await _existing(connection, table):
        ends = datetime.strptime(name[-8:], "%Y%m%d").replace(tzinfo=UTC) + DAY
        if ends < keep_since:
            async with making(connection):
                await connection.execute(f"DROP TABLE IF EXISTS {name}")
            gone.append(name)
    return gone


async def _existing(connection: Connection, table: str) -> list[str]:
    rows = await connection.fetch(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = $1::text::regclass AND c.relname ~ ('^' || $1 || '_[0-9]{8}$')"
        " ORDER BY 1",
        table,
    )
    return [row["relname"] for row in rows]
