"""Jobs that tenants hand in with transactions of their own, until they are moved (migration 0021).

They come by `fairway_enqueue`, a function of the database; here is how they leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.store import arrays
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch,
    fetch_as,
    fetch_values,
)
from fairway.store.sql import load

_SQL = load("outbox.sql")

#: Where servers hear that a transaction with jobs in it was committed.
CHANNEL = "fairway_outbox"


class WaitingJob(NamedTuple):
    id: JobId
    request: str  # as the body of POST /v1/jobs


class Measured(NamedTuple):
    """How much of a tenant's waits, as far as it was counted."""

    jobs: int
    size_bytes: int


async def waiting_tenants(
    connection: Connection, shard: ShardId, after: TenantId, limit: int
) -> list[TenantId]:
    return await fetch_values(
        connection, _SQL["waiting_tenants"], shard=shard, after=after, limit=limit
    )


async def read_waiting(
    connection: Connection, shard: ShardId, tenant: TenantId, limit: int, bytes_max: int
) -> list[WaitingJob]:
    """The oldest first; the last of them may go beyond the bytes."""
    return await fetch_as(
        WaitingJob, connection, _SQL["read_waiting"],
        shard=shard, tenant=tenant, limit=limit, bytes_max=bytes_max,
    )  # fmt: skip


async def take_waiting(
    connection: Connection, shard: ShardId, term: Term, tenant: TenantId, ids: Sequence[JobId]
) -> set[JobId]:
    """Those of them that are ours to write now; none, when the term is over."""
    return set(
        await fetch_values(
            connection, _SQL["take_waiting"],
            shard=shard, tenant=tenant, ids=arrays.ids(ids), term=term,
        )
    )  # fmt: skip


async def set_aside(
    connection: Connection,
    shard: ShardId,
    tenant: TenantId,
    reasons: Mapping[JobId, str],
    *,
    keep: int,
) -> None:
    """These will not be moved; of all that were set aside, the tenant's newest are kept."""
    await execute(
        connection, _SQL["set_aside"],
        shard=shard, tenant=tenant, ids=list(reasons), reasons=list(reasons.values()),
    )  # fmt: skip
    await execute(connection, _SQL["forget_refused"], shard=shard, tenant=tenant, keep=keep)


async def measure_waiting(
    connection: Connection, shard: ShardId, tenant: TenantId, limit: int
) -> Measured:
    rows = await fetch(connection, _SQL["measure_waiting"], shard=shard, tenant=tenant, limit=limit)
    return Measured(*rows[0])
