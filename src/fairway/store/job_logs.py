"""What runs said: chunks of lines, written in groups, read in order.

Days of them go as a whole (`log_partitions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairway.core.ids import Epoch, JobId, ShardId, TenantId
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, execute, fetch_as
from fairway.store.sql import load

_SQL = load("job_logs.sql")


class Chunk(NamedTuple):
    """Lines of one run, one after the other."""

    tenant: TenantId
    job: JobId
    epoch: Epoch
    attempt: int
    first_n: int
    last_n: int
    lines: bytes


class FoundChunk(NamedTuple):
    epoch: Epoch
    attempt: int
    lines: bytes


class LogPlace(NamedTuple):
    """After this line of that run."""

    epoch: Epoch
    n: int


async def keep_lines(connection: Connection, shard: ShardId, chunks: Sequence[Chunk]) -> None:
    """All of one shard."""
    rows = columns(chunks, "tenants", "jobs", "epochs", "attempts", "first_ns", "last_ns", "lines")
    await execute(connection, _SQL["keep_lines"], shard=shard, **rows)


async def list_lines(
    connection: Connection,
    job: tuple[ShardId, TenantId, JobId],
    after: LogPlace,
    attempt: int | None,
    limit: int,
) -> list[FoundChunk]:
    """At most so many chunks; with what stands in one before the place, too."""
    shard, tenant, id_ = job
    return await fetch_as(
        FoundChunk, connection, _SQL["list_lines"], shard=shard, tenant=tenant, job=id_,
        epoch=after.epoch, after_n=after.n, attempt=attempt, limit=limit,
    )  # fmt: skip
