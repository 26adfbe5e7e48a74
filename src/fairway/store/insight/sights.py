"""What each server saw last: one row a server, so that every one can tell of all."""

from __future__ import annotations

from fairway.store.connections.database import Connection, execute, fetch_values
from fairway.store.sql import load

_SQL = load("sights.sql")


async def tell_sight(connection: Connection, server: str, sight: bytes) -> None:
    await execute(connection, _SQL["tell_sight"], server=server, sight=sight)


async def other_sights(connection: Connection, server: str, limit: int) -> list[bytes]:
    """What the others said in the last seconds, the newest first."""
    return await fetch_values(connection, _SQL["other_sights"], server=server, limit=limit)


async def forget_sights(connection: Connection) -> int:
    """Of servers that are long gone."""
    return await execute(connection, _SQL["forget_sights"])
