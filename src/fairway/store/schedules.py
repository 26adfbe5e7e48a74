"""Recurring schedules and their runs, as rows. What is due is held until its transaction ends.

A run is claimed by its tick, in the transaction that writes its job: whoever comes second, be it
another owner or a backfill, gets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.core.scheduling.schedule import PastRun, Schedule, ScheduleKey, ScheduleSpec
from fairway.store.arrays import columns
from fairway.store.connections.database import (
    Connection,
    Record,
    execute,
    fetch,
    fetch_as,
    fetch_row,
    fetch_value,
    is_found,
)
from fairway.store.sql import load

_SQL = load("schedules.sql")

PAGE_BYTES = 4 << 20  # of payloads: a page as heavy as this may go on (as in `list_schedules`)


class Settled(NamedTuple):
    """How far a schedule has come."""

    tenant: TenantId
    name: str
    handled_at: datetime
    next_at: datetime | None
    waiting_tick: datetime | None
    last_job: JobId | None


class Run(NamedTuple):
    tenant: TenantId
    name: str
    tick: datetime
    cause: int
    outcome: int
    job: JobId | None


def _schedule(row: Record) -> Schedule:
    return Schedule(
        ScheduleKey(row["shard"], row["tenant"], row["name"]),
        ScheduleSpec._make(row[name] for name in ScheduleSpec._fields),
        row["handled_at"],
        row["next_at"],
        row["waiting_tick"],
        None if row["last_job"] is None else JobId(str(row["last_job"])),
        row["created_at"],
        row["updated_at"],
    )


async def put_schedule(
    connection: Connection,
    key: ScheduleKey,
    spec: ScheduleSpec,
    handled_at: datetime,
    next_at: datetime | None,
) -> bool:
    """True when it is new."""
    row = await fetch_row(
        connection,
        _SQL["put_schedule"],
        **key._asdict(),
        **spec._asdict(),
        handled_at=handled_at,
        next_at=next_at,
    )
    return bool(row and row["is_new"])


async def count_others(connection: Connection, key: ScheduleKey) -> int:
    count: int = await fetch_value(connection, _SQL["count_schedules"], **key._asdict())
    return count


async def read_schedule(connection: Connection, key: ScheduleKey) -> Schedule | None:
    row = await fetch_row(connection, _SQL["read_schedule"], **key._asdict())
    return _schedule(row) if row else None


async def list_schedules(
    connection: Connection, shard: ShardId, tenant: TenantId, after: str, limit: int
) -> list[Schedule]:
    rows = await fetch(
        connection, _SQL["list_schedules"], shard=shard, tenant=tenant, after=after, limit=limit
    )
    return [_schedule(row) for row in rows]


def is_cut(page: list[Schedule]) -> bool:
    """Whether a page ended for its weight: then there may be more, however few these are."""
    return sum(len(one.spec.payload) for one in page) >= PAGE_BYTES


async def pause_schedule(
    connection: Connection,
    key: ScheduleKey,
    paused: bool,
    handled_at: datetime,
    next_at: datetime | None,
) -> bool:
    return await is_found(
        connection,
        _SQL["pause_schedule"],
        **key._asdict(),
        paused=paused,
        handled_at=handled_at,
        next_at=next_at,
    )


async def delete_schedule(connection: Connection, key: ScheduleKey) -> bool:
    """With its runs; the jobs they made stay."""
    async with connection.transaction():
        was_there = await is_found(connection, _SQL["delete_schedule"], **key._asdict())
        await execute(connection, _SQL["delete_runs"], **key._asdict())
    return was_there


# -- ticking, inside one transaction of the owner's ----------------------------------------------


async def hold_shard(connection: Connection, shard: ShardId, term: Term) -> datetime | None:
    """The database's time, if this term is in force; it stays so until the transaction ends."""
    now: datetime | None = await fetch_value(connection, _SQL["hold_shard"], shard=shard, term=term)
    return now


async def due_schedules(connection: Connection, shard: ShardId, limit: int) -> list[Schedule]:
    rows = await fetch(connection, _SQL["due_schedules"], shard=shard, limit=limit)
    return [_schedule(row) for row in rows]


async def waiting_schedules(
    connection: Connection, shard: ShardId, after: tuple[TenantId, str], limit: int
) -> list[Schedule]:
    rows = await fetch(
        connection,
        _SQL["waiting_schedules"],
        shard=shard,
        tenant=after[0],
        after=after[1],
        limit=limit,
    )
    return [_schedule(row) for row in rows]


async def seconds_to_next(connection: Connection, shard: ShardId) -> float | None:
    row = await fetch_row(connection, _SQL["next_schedule"], shard=shard)
    return float(row["seconds"]) if row else None


async def claim_runs(connection: Connection, shard: ShardId, runs: Sequence[Run]) -> set[str]:
    """Jobs of the runs whose tick was free; the others must not be written."""
    runs = sorted(runs, key=lambda run: run[:3])  # in one order for all: no deadlocks
    wanted = columns(runs, "tenants", "names", "ticks", "causes", "outcomes", "jobs")
    rows = await fetch(connection, _SQL["claim_runs"], shard=shard, **wanted)
    return {row["job"] for row in rows if row["job"] is not None}


async def settle_schedules(connection: Connection, shard: ShardId, done: Sequence[Settled]) -> None:
    ends = ("handled_ats", "next_ats", "waiting_ticks", "last_jobs")
    rows = columns(done, "tenants", "names", *ends)
    await execute(connection, _SQL["settle_schedules"], shard=shard, **rows)


# -- history -------------------------------------------------------------------------------------


async def list_runs(
    connection: Connection, key: ScheduleKey, before: datetime, limit: int
) -> list[PastRun]:
    asked = {"before": before, "limit": limit, **key._asdict()}
    return await fetch_as(PastRun, connection, _SQL["list_runs"], **asked)


async def forget_runs(connection: Connection, shard: ShardId, before: datetime, limit: int) -> int:
    return await execute(connection, _SQL["forget_runs"], shard=shard, before=before, limit=limit)
