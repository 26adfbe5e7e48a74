"""Pools as rows: the built-in three and those that operators added."""

from __future__ import annotations

from typing import Any

from fairway.core.pools import Pool
from fairway.store.connections.database import Connection, fetch, fetch_row
from fairway.store.sql import load

_SQL = load("pools.sql")


async def all_pools(connection: Connection) -> list[Pool]:
    rows: list[dict[str, Any]] = [dict(row) for row in await fetch(connection, _SQL["all_pools"])]
    return [Pool(**row | {"labels": tuple(row["labels"])}) for row in rows]


async def put_pool(connection: Connection, pool: Pool) -> bool:
    """Make or change a pool; False when two were made at the same moment: try again."""
    row = await fetch_row(
        connection,
        _SQL["put_pool"],
        name=pool.name,
        lease_mode=pool.lease_mode,
        lease_seconds=pool.lease_seconds,
        slots_default=pool.slots_default,
        run_mode=pool.run_mode,
        checkpoint=pool.checkpoint,
        attempts_max=pool.attempts_max,
        pickup_target_seconds=pool.pickup_target_seconds,
        estimate_seconds=pool.estimate_seconds,
        labels=list(pool.labels),
        reserved_share=pool.reserved_share,
    )
    return row is not None
