"""Days of what runs said: made ahead of time, and dropped whole when they are past retention.

Nothing waits for them as jobs do for theirs, and no row lives on: a day that is over is dropped.
A line that finds no day is refused, and lost: the table is made ready whenever a server starts.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fairway.store.connections.database import Connection
from fairway.store.schema.partitions import making

DAY = timedelta(days=1)
AHEAD = 3
PREFIX = "job_logs_"


async def make_log_days(connection: Connection, now: datetime) -> list[str]:
    """Yesterday, today and the next few; answers the names of those that were new."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    have, made = await _existing(connection), []
    for begins in (today + DAY * offset for offset in range(-1, AHEAD)):
        name = f"{PREFIX}{begins:%Y%m%d}"
        if name not in have:
            async with making(connection):
                await connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF job_logs"
                    f" FOR VALUES FROM ('{begins.isoformat()}') TO ('{(begins + DAY).isoformat()}')"
                )
            made.append(name)
    return made


async def drop_log_days(connection: Connection, keep_since: datetime) -> list[str]:
    """Days that ended before then; answers the names of those that are gone."""
    gone = []
    for name in await _existing(connection):
        ends = datetime.strptime(name.removeprefix(PREFIX), "%Y%m%d").replace(tzinfo=UTC) + DAY
        if ends < keep_since:
            async with making(connection):
                await connection.execute(f"DROP TABLE IF EXISTS {name}")
            gone.append(name)
    return gone


async def _existing(connection: Connection) -> list[str]:
    rows = await connection.fetch(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = 'job_logs'::regclass AND c.relname ~ '^job_logs_[0-9]{8}$' ORDER BY 1"
    )
    return [row["relname"] for row in rows]
