"""The registry of job types: what they were registered with, and where they were moved."""

from __future__ import annotations

from datetime import datetime, timedelta

from fairway.core.job_type import JobType, TypeFacts
from fairway.store.connections.database import Connection, execute, fetch, fetch_row
from fairway.store.sql import load

_SQL = load("job_types.sql")


async def changed_types(connection: Connection, since: datetime) -> list[JobType]:
    rows = await fetch(connection, _SQL["changed_types"], since=since)
    return [
        JobType(row["id"], row["name"], TypeFacts(*tuple(row)[2:9]), *tuple(row)[9:])
        for row in rows
    ]


async def register_type(
    connection: Connection, type_id: int, facts: TypeFacts, *, by_hand: bool = False
) -> None:
    await execute(
        connection,
        _SQL["register_type"],
        id=type_id,
        pool=facts.pool,
        timeout_ms=facts.timeout_ms,
        attempts_max=facts.attempts_max,
        dependency=facts.dependency,
        warm_key=facts.warm_key,
        version=facts.version,
        schema=facts.schema,
        by_hand=by_hand,
    )


async def take_back_type(connection: Connection, type_id: int) -> bool:
    """Undo what an operator put; False when nothing was put by hand. Inside a transaction."""
    await fetch_row(connection, _SQL["hold_type"], id=type_id)
    return await fetch_row(connection, _SQL["take_back_type"], id=type_id) is not None


async def move_type(
    connection: Connection, type_id: int, pool: int, measured_ms: int, sticky_seconds: float
) -> bool:
    """Whether it was moved now; False when it was moved before, within its rest."""
    row = await fetch_row(
        connection,
        _SQL["move_type"],
        id=type_id,
        pool=pool,
        measured_ms=measured_ms,
        sticky=timedelta(seconds=sticky_seconds),
    )
    return row is not None
