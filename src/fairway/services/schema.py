"""What a server does to the database before it serves: the present schema, and partitions.

It says in the log what it waits for, and decides nothing.
"""

from __future__ import annotations

from datetime import datetime

from fairway.runtime.telemetry import logger
from fairway.store import partitions
from fairway.store.database import Connection
from fairway.store.migrate import migrate_at

log = logger("schema")


async def migrated(dsn: str) -> None:
    """Bring the database to the present schema, or wait for whoever is at it."""
    said: set[str] = set()

    def say(reason: str) -> None:
        if reason not in said:
            log.info(reason)
        said.add(reason)

    for migration in await migrate_at(dsn, say):
        log.info("migration applied", migration=migration.name)


async def make_partitions(connection: Connection, now: datetime) -> None:
    """A server need not wait for them: jobs find a place, and the pruner tries again."""
    try:
        await partitions.make_ahead(connection, now)
    except partitions.NOT_NOW as error:
        log.warning("jobs in use, partitions are made later", error=repr(error))
