"""Answers questions about jobs: one, or a page of many. Always within one tenant."""

from __future__ import annotations

from collections.abc import Sequence

from fairway.core.ids import JobId
from fairway.core.job import JobFilter, JobRecord
from fairway.store.database import Connection, fetch, fetch_row
from fairway.store.sql import load

_SQL = load("history.sql")


async def read_job(connection: Connection, shard: int, tenant: int, job: JobId) -> JobRecord | None:
    row = await fetch_row(connection, _SQL["read_job"], shard=shard, tenant=tenant, id=job)
    return JobRecord._make(row) if row else None


async def read_states(
    connection: Connection, shard: int, wanted: Sequence[tuple[int, str]]
) -> dict[str, tuple[int, int]]:
    """Job id → (state, epoch)."""
    rows = await fetch(
        connection,
        _SQL["read_states"],
        shard=shard,
        tenants=[tenant for tenant, _ in wanted],
        ids=[job for _, job in wanted],
    )
    return {row["id"]: (row["state"], row["epoch"]) for row in rows}


async def list_jobs(
    connection: Connection, shard: int, tenant: int, wanted: JobFilter
) -> list[JobRecord]:
    rows = await fetch(
        connection, _SQL["list_jobs"], shard=shard, tenant=tenant, **wanted._asdict()
    )
    return [JobRecord(*row) for row in rows]  # without the history
