"""Pools as rows: the built-in three and those that operators added."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fairway.core.pools import Pool
from fairway.store.connections.database import Connection, fetch, is_found
from fairway.store.sql import load

_SQL = load("pools.sql")


async def all_pools(connection: Connection) -> list[Pool]:
    rows: list[dict[str, Any]] = [dict(row) for row in await fetch(connection, _SQL["all_pools"])]
    return [Pool(**row | {"labels": tuple(row["labels"])}) for row in rows]


async def put_pool(connection: Connection, pool: Pool) -> bool:
    """Make or change a pool; False when two were made at the same moment: try again."""
    return await is_found(
        connection, _SQL["put_pool"], **asdict(pool) | {"labels": list(pool.labels)}
    )
