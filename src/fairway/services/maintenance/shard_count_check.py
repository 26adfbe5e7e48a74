"""What `fairway check` says of the number of shards: is it the one that the settings ask for?

Reads one row, and changes nothing. What is told is decided in `core/ownership/shard_count_wish.py`.
"""

from __future__ import annotations

import asyncpg

from fairway.core.ownership.shard_count_wish import unheeded
from fairway.store.connections.hosts import connect_for_once
from fairway.store.postgres.tuning import Finding
from fairway.store.registry.tenants import read_cluster


async def inspect_shard_count(dsn: str, wanted: int | None) -> list[Finding]:
    """Nothing where no number was asked for, or no server has founded the database yet."""
    if wanted is None:
        return []
    connection = await connect_for_once(dsn, "fairway-check")
    try:
        cluster = await read_cluster(connection)
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError):
        return []  # of an older schema, or none
    except asyncpg.InsufficientPrivilegeError:
        return []  # who may not read it hears that from the look at roles
    finally:
        await connection.close()
    told = None if cluster is None else unheeded(wanted, cluster.shard_count, cluster.shards)
    return [] if told is None else [Finding(level="warning", what=told.what, remedy=told.remedy)]
