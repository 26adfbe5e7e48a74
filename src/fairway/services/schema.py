"""What a server does to the database before it serves: the present schema, and partitions.

It says in the log what it waits for, and decides nothing.
"""

from __future__ import annotations

from datetime import datetime

from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger
from fairway.store import partitions
from fairway.store.database import Connection, Database
from fairway.store.migrate import migrate_at

log = logger("schema")


async def migrated(dsn: str, *, roles: bool) -> None:
    """Bring the database to the present schema, or wait for whoever is at it."""
    said: set[str] = set()

    def say(reason: str) -> None:
        if reason not in said:
            log.info(reason)
        said.add(reason)

    for migration in await migrate_at(dsn, say, roles=roles):
        log.info("migration applied", migration=migration.name)


async def opened(dsn: str, settings: Settings) -> Database:
    """The pools of a server, on the present schema, with the wall between tenants in force."""
    owner_dsn, row_security = settings.owner_database_url or dsn, settings.row_security
    await migrated(owner_dsn, roles=row_security)
    database = await Database.open(
        dsn,
        owner_dsn=owner_dsn,
        row_security=row_security,
        wait_seconds=settings.store_wait_seconds,
    )
    await database.prove_walls()
    return database


async def make_partitions(connection: Connection, now: datetime) -> None:
    """A server need not wait for them: jobs find a place, and the pruner tries again."""
    try:
        await partitions.make_ahead(connection, now)
    except partitions.NOT_NOW as error:
        log.warning("jobs in use, partitions are made later", error=repr(error))
