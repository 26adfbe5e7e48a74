"""The registry of job types: what they were registered with, and where they were moved."""

from __future__ import annotations

from datetime import datetime, timedelta

from fairway.core.ids import PoolId, TypeId
from fairway.core.job_type import JobType, TypeFacts
from fairway.store.connections.database import (
    Connection,
    Record,
    execute,
    fetch,
    fetch_row,
    is_found,
)
from fairway.store.sql import load

_SQL = load("job_types.sql")


async def changed_types(connection: Connection, since: datetime) -> list[JobType]:
    rows = await fetch(connection, _SQL["changed_types"], since=since)
    return [_job_type(row) for row in rows]


def _job_type(row: Record) -> JobType:
    return JobType(
        row["id"],
        row["name"],
        TypeFacts(*(row[name] for name in TypeFacts._fields)),
        row["is_registered"],
        row["measured_pool"],
        row["measured_p95_ms"],
        row["moved_at"],
        row["shared"],
        row["renounced_at"],
        row["is_let_go"],
    )


async def register_type(
    connection: Connection, type_id: TypeId, facts: TypeFacts, *, by_hand: bool = False
) -> None:
    said = facts._asdict()
    await execute(connection, _SQL["register_type"], id=type_id, by_hand=by_hand, **said)


async def take_back_type(connection: Connection, type_id: TypeId) -> bool:
    """Undo what an operator put; False when nothing was put by hand. Inside a transaction."""
    await fetch_row(connection, _SQL["hold_type"], id=type_id)
    return await is_found(connection, _SQL["take_back_type"], id=type_id)


async def move_type(
    connection: Connection, type_id: TypeId, pool: PoolId, measured_ms: int, sticky_seconds: float
) -> bool:
    """Whether it was moved now; False when it was moved before, within its rest."""
    return await is_found(
        connection,
        _SQL["move_type"],
        id=type_id,
        pool=pool,
        measured_ms=measured_ms,
        sticky=timedelta(seconds=sticky_seconds),
    )
