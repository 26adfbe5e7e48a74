"""Dead letters: dead jobs that wait for somebody to look at them, always within one tenant.

They are jobs in state `dead` with a fingerprint; nothing is copied. Every statement is bounded: a
page, a batch, a count that stops counting. What changes a job checks the owner's term in itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.failure.dead_letter import DeadFilter, DeathCause
from fairway.core.ids import JobId, ShardId, TenantId, Term, TypeId
from fairway.core.job import JobRecord, QueuedJob
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch,
    fetch_as,
    fetch_value,
    fetch_values,
)
from fairway.store.sql import load

_SQL = load("dead_letters.sql")


async def list_dead(
    connection: Connection, shard: ShardId, tenant: TenantId, wanted: DeadFilter, limit: int
) -> list[JobRecord]:
    """Without their histories."""
    return await fetch_as(
        JobRecord,
        connection,
        _SQL["list_dead"],
        shard=shard,
        tenant=tenant,
        limit=limit,
        **wanted._asdict(),
    )


async def count_dead(
    connection: Connection, shard: ShardId, tenant: TenantId, wanted: DeadFilter, most: int
) -> int:
    """How many there are, or `most` if there are more."""
    count: int = await fetch_value(
        connection, _SQL["count_dead"], shard=shard, tenant=tenant, limit=most, **wanted._asdict()
    )
    return count


async def causes(
    connection: Connection, shard: ShardId, tenant: TenantId, *, limit: int, count_max: int
) -> list[DeathCause]:
    return await fetch_as(
        DeathCause,
        connection,
        _SQL["dead_causes"],
        shard=shard,
        tenant=tenant,
        limit=limit,
        count_max=count_max,
    )


async def counts_by_type(
    connection: Connection, shard: ShardId, tenant: TenantId, *, limit: int, count_max: int
) -> dict[TypeId, int]:
    rows = await fetch(
        connection,
        _SQL["dead_types"],
        shard=shard,
        tenant=tenant,
        limit=limit,
        count_max=count_max,
    )
    return {row["type"]: row["matched"] for row in rows}


class Walk(NamedTuple):
    """Where an action goes on: after the cursor, among those that were dead when it began."""

    cursor: str
    began: datetime
    limit: int


async def next_dead(
    connection: Connection, shard: ShardId, tenant: TenantId, wanted: DeadFilter, walk: Walk
) -> list[JobId]:
    return await fetch_values(
        connection,
        _SQL["next_dead"],
        shard=shard,
        tenant=tenant,
        **wanted._asdict(),
        **walk._asdict(),
    )


class Replay(NamedTuple):
    tenant: TenantId
    ids: Sequence[str]
    payload: bytes | None  # in place of the jobs' own
    entry: bytes  # for the jobs' histories


async def replay(
    connection: Connection, shard: ShardId, term: Term, wanted: Replay, *, in_flow: bool = False
) -> list[QueuedJob]:
    """Back to the backlog; answers those that were dead letters until now. Members of flows are
    left alone, unless that is counted now."""
    given = wanted._asdict() | {"in_flow": in_flow}
    return await fetch_as(QueuedJob, connection, _SQL["replay"], shard=shard, term=term, **given)


async def discard(
    connection: Connection, shard: ShardId, term: Term, tenant: TenantId, ids: Sequence[str]
) -> int:
    """Off the list; answers how many were on it."""
    return await execute(
        connection, _SQL["discard"], shard=shard, term=term, tenant=tenant, ids=list(ids)
    )
