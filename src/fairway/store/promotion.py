"""Scheduled jobs in the store: where due ones are, promoting them, moving and expiring them.

Due jobs are found by *bunches*: one tenant in one second. Finding and promoting touch rows that are
due, and no others; the database's clock decides which those are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.core.job import QueuedJob
from fairway.core.scheduling.promotion import Bunch
from fairway.store.arrays import columns
from fairway.store.connections.database import (
    Connection,
    fetch,
    fetch_as,
    fetch_row,
    fetch_values,
    is_found,
)
from fairway.store.sql import load

_SQL = load("promotion.sql")


class LateJob(NamedTuple):
    """A waiting job whose last moment has passed."""

    id: JobId
    key: StreamKey


async def due_bunches(
    connection: Connection, shard: ShardId, after: tuple[int, TenantId], limit: int
) -> list[Bunch]:
    """Slices in order, after the one of this (second, tenant); the present second is included."""
    second, tenant = after
    return await fetch_as(
        Bunch,
        connection,
        _SQL["due_bunches"],
        shard=shard,
        second=second,
        tenant=tenant,
        limit=limit,
    )


async def seconds_to_next(
    connection: Connection, shard: ShardId, after: tuple[int, TenantId]
) -> float | None:
    """Until the second of the next bunch begins; below 0 when it has begun."""
    second, tenant = after
    row = await fetch_row(
        connection, _SQL["next_second"], shard=shard, second=second, tenant=tenant
    )
    return float(row["seconds"]) if row else None


async def promote_due(
    connection: Connection,
    shard: ShardId,
    term: Term,
    bunches: Sequence[Bunch],
    shares: Mapping[TenantId, int],
) -> list[QueuedJob]:
    """Of these bunches, at most so many jobs of each tenant; in the order of their ids."""
    jobs = await fetch_as(
        QueuedJob,
        connection,
        _SQL["promote_due"],
        shard=shard,
        term=term,
        tenants=list(shares),
        limits=list(shares.values()),
        **columns(bunches, "bunch_seconds", "bunch_tenants"),
    )
    return sorted(jobs)


async def reschedule(
    connection: Connection,
    shard: ShardId,
    term: Term,
    tenant: TenantId,
    job: JobId,
    execute_at: datetime,
) -> bool:
    """True when the job was scheduled and now has this time."""
    return await is_found(
        connection,
        _SQL["reschedule"],
        shard=shard,
        term=term,
        tenant=tenant,
        id=job,
        execute_at=execute_at,
    )


async def passed_last_moments(connection: Connection, shard: ShardId, limit: int) -> list[LateJob]:
    rows = await fetch(connection, _SQL["passed_last_moments"], shard=shard, limit=limit)
    return [LateJob(JobId(row["id"]), StreamKey._make(tuple(row)[1:])) for row in rows]


async def expire(
    connection: Connection,
    shard: ShardId,
    term: Term,
    late: Sequence[LateJob],
    error: bytes,
    *,
    in_flow: bool = False,
) -> set[str]:
    """Which of these were still waiting, and are expired now; members of flows only as such."""
    expired = await fetch_values(
        connection,
        _SQL["expire"],
        shard=shard,
        term=term,
        tenants=[job.key.tenant for job in late],
        ids=[job.id for job in late],
        error=error,
        in_flow=in_flow,
    )
    return set(expired)
