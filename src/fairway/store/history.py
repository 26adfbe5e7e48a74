"""Answers questions about jobs: one, or a page of many. Always within one tenant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import Epoch, JobId, PoolId, ShardId, TenantId, TypeId
from fairway.core.job import JobFilter, JobRecord
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, fetch, fetch_as, fetch_row
from fairway.store.sql import load

_SQL = load("history.sql")

PAGE_BYTES = 4 << 20  # of results and errors: a page as heavy as this may go on (as in `list_jobs`)
LOOKED_MAX = 20_000  # rows of one part of a walk over a tenant's jobs: some tens of milliseconds
COUNT_LOOKED_MAX = 500_000  # of one that somebody waits for


async def read_jobs(
    connection: Connection, shard: ShardId, wanted: Sequence[tuple[TenantId, JobId]]
) -> dict[tuple[TenantId, JobId], JobRecord]:
    """(tenant, job) → the job, for those that are there."""
    asked = columns(wanted, "tenants", "ids")
    rows = await fetch(connection, _SQL["read_jobs"], shard=shard, **asked)
    return {(row["tenant"], row["id"]): JobRecord._make(row) for row in rows}


async def read_job(
    connection: Connection, shard: ShardId, tenant: TenantId, job: JobId
) -> JobRecord | None:
    return (await read_jobs(connection, shard, [(tenant, job)])).get((tenant, job))


async def read_states(
    connection: Connection, shard: ShardId, wanted: Sequence[tuple[TenantId, str]]
) -> dict[str, tuple[int, Epoch]]:
    """Job id → (state, epoch)."""
    asked = columns(wanted, "tenants", "ids")
    rows = await fetch(connection, _SQL["read_states"], shard=shard, **asked)
    return {row["id"]: (row["state"], row["epoch"]) for row in rows}


async def list_jobs(
    connection: Connection, shard: ShardId, tenant: TenantId, wanted: JobFilter
) -> list[JobRecord]:
    """Without their histories and without long payloads."""
    return await fetch_as(
        JobRecord, connection, _SQL["list_jobs"], shard=shard, tenant=tenant, **wanted._asdict()
    )


def is_cut(page: Sequence[JobRecord]) -> bool:
    """Whether a page ended for its weight: then there may be more, however few these are."""
    return sum(len(job.result or b"") + len(job.error or b"") for job in page) >= PAGE_BYTES


async def list_children(
    connection: Connection, shard: ShardId, tenant: TenantId, ids: Sequence[JobId]
) -> list[JobRecord]:
    """Those of these that are there, as `list_jobs` shows them."""
    return await fetch_as(
        JobRecord, connection, _SQL["list_children"], shard=shard, tenant=tenant, ids=ids
    )


class Relative(NamedTuple):
    """A job of a family: where it stands, and where its children are."""

    id: JobId
    tenant: TenantId
    pool: PoolId
    type: TypeId
    priority: int
    lane: int
    state: int
    epoch: Epoch
    children: int | None
    children_ms: int | None

    @property
    def live(self) -> LiveJob:
        key = StreamKey(self.tenant, self.pool, self.type, self.priority, self.lane)
        return LiveJob(self.id, key)


async def read_relatives(
    connection: Connection, shard: ShardId, tenant: TenantId, ids: Sequence[JobId]
) -> list[Relative]:
    """Those of these that are there."""
    return await fetch_as(
        Relative, connection, _SQL["read_relatives"], shard=shard, tenant=tenant, ids=ids
    )


class IdRange(NamedTuple):
    since: str
    before: str


class TypesSeen(NamedTuple):
    jobs: int  # that were looked at; fewer than were asked for: there are no more
    types: set[TypeId]
    first: str | None  # the newest of them
    last: str | None  # the oldest


async def types_of_jobs(
    connection: Connection, shard: ShardId, tenant: TenantId, ids: IdRange, limit: int
) -> TypesSeen:
    """Which types the next so many of a tenant's jobs have, newest first."""
    row = await fetch_row(
        connection, _SQL["types_of_jobs"], shard=shard, tenant=tenant, limit=limit, **ids._asdict()
    )
    if row is None:
        return TypesSeen(0, set(), None, None)
    return TypesSeen(row["jobs"], set(row["types"] or ()), row["first"], row["last"])


class LiveJob(NamedTuple):
    id: JobId
    key: StreamKey


class LivePart(NamedTuple):
    """What one part of a walk over a tenant's jobs found."""

    jobs: list[LiveJob]  # newest first
    cursor: str | None  # the next part begins before this one; None: there is nothing more


async def live_jobs(
    connection: Connection,
    shard: ShardId,
    tenant: TenantId,
    wanted: JobFilter,
    looked_max: int | None = None,
) -> LivePart:
    """Of so many of the newest rows; `LOOKED_MAX` when nothing is said."""
    rows = await fetch(
        connection,
        _SQL["live_jobs"],
        shard=shard,
        tenant=tenant,
        looked_max=looked_max or LOOKED_MAX,
        **wanted._asdict(),
    )
    jobs = [
        LiveJob(
            row["id"], StreamKey(tenant, row["pool"], row["type"], row["priority"], row["lane"])
        )
        for row in rows
        if row["is_found"]
    ]
    is_full = len(jobs) == wanted.limit
    last = jobs[-1].id if is_full else next((r["id"] for r in rows if not r["is_found"]), None)
    return LivePart(jobs, last)


class LiveCount(NamedTuple):
    matched: int
    is_exact: bool


async def count_live(
    connection: Connection,
    shard: ShardId,
    tenant: TenantId,
    wanted: JobFilter,
    looked_max: int = COUNT_LOOKED_MAX,
) -> LiveCount:
    """How many have not ended, up to the filter's limit, among so many of the newest rows."""
    row = await fetch_row(
        connection,
        _SQL["count_live_jobs"],
        shard=shard,
        tenant=tenant,
        looked_max=looked_max,
        **wanted._asdict(),
    )
    matched, is_longer = (0, False) if row is None else row
    return LiveCount(matched, matched < wanted.limit and not is_longer)
