"""What a server does to the database before it serves: the schema, its walls, partitions.

It says in the log what it waits for, and refuses to go on where the walls do not stand.
"""

from __future__ import annotations

from datetime import datetime

from fairway.core.regions.region_map import region_map
from fairway.core.server_processes import pool_sizes
from fairway.runtime.settings import Settings
from fairway.runtime.telemetry import logger
from fairway.services.database_proofs import (
    be_one_database,
    prove_connections,
    prove_region,
    prove_row_security,
)
from fairway.store.connections.database import DISCONNECTED, Connection, Database
from fairway.store.schema import partitions
from fairway.store.schema.log_partitions import make_log_days
from fairway.store.schema.migrate import migrate_at

log = logger("schema")


async def migrated(dsn: str, *, roles: bool) -> None:
    """Bring the database to the present schema, or wait for whoever is at it."""
    said: set[str] = set()

    def say(reason: str) -> None:
        if reason not in said:
            log.info(reason)
        said.add(reason)

    applied = await migrate_at(dsn, say, roles=roles)
    if applied and applied[0].number == 1:  # an empty database: nobody asks how it came about
        log.info("schema made", migrations=len(applied))
        return
    for migration in applied:
        log.info("migration applied", migration=migration.name)


async def opened(dsn: str, settings: Settings) -> Database:
    """The pools of a server, on the present schema, with the wall between tenants in force."""
    owner_dsn = settings.owner_database_url or dsn
    await be_one_database(dsn, owner_dsn)
    await migrated(owner_dsn, roles=settings.row_security)
    database = await Database.open(
        dsn,
        owner_dsn=owner_dsn,
        row_security=settings.row_security,
        wait_seconds=settings.store_wait_seconds,
        by_shard=settings.store_by_shard,
        sizes=pool_sizes(max(settings.server_processes, 1)),
    )
    await prove_connections(database, settings.server_processes)
    await prove_row_security(database)
    await prove_region(database, region_map(settings.region, settings.regions))
    return database


async def make_partitions(connection: Connection, now: datetime) -> None:
    """A server need not wait for them: jobs find a place, and the pruner tries again."""
    try:
        await partitions.make_ahead(connection, now)
        await make_log_days(connection, now)
    except (*partitions.NOT_NOW, *DISCONNECTED) as error:
        log.warning("jobs in use, partitions are made later", error=repr(error))
