"""The shards as a whole: a list for people, and how they become more."""

from __future__ import annotations

from fairway.core.ownership.shard_sight import QUEUED_COUNTED_MAX, ShardSight
from fairway.store.connections.database import Connection, execute, fetch_as, fetch_value
from fairway.store.registry.tenants import add_shards
from fairway.store.sql import load

_SQL = load("shards.sql")


async def list_shards(connection: Connection) -> list[ShardSight]:
    """All of them, by number."""
    asked = {"counted_max": QUEUED_COUNTED_MAX}
    return await fetch_as(ShardSight, connection, _SQL["list_shards"], **asked)


async def hold_count(connection: Connection) -> int:
    """How many there are; until the transaction ends nobody else changes that."""
    count: int = await fetch_value(connection, _SQL["hold_count"])
    return count


async def grow(connection: Connection, count: int) -> None:
    """So many from now on. Rows first: nobody is at home in a shard that nobody can own."""
    await add_shards(connection, count)
    await execute(connection, _SQL["set_count"], shards=count)
