"""What runs said: chunks of lines, written in groups, read in order.

Days of them go as a whole (`log_partitions.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.run.log_chunk import Chunk, FoundChunk, LogPlace
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, execute, fetch_as
from fairway.store.sql import load

_SQL = load("job_logs.sql")


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
