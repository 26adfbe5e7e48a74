"""Reads the backlog for its owner: which streams have work, and the next jobs of each.

A *stream* is the queued jobs of one tenant in one pool and lane, of one type and
priority, in id order.
Every read starts after a cursor or at a stream's head; none walks over finished jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fairway.core.backlog.pulls import ROWS_MAX, Ask
from fairway.core.backlog.reading import Found
from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import LOWEST_JOB_ID, JobId, PoolId, ShardId, TenantId, TypeId
from fairway.core.job import QueuedJob
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, fetch, fetch_value
from fairway.store.sql import load

_SQL = load("backlog.sql")


_BEFORE_ALL = StreamKey(TenantId(-1), PoolId(-1), TypeId(-1), -1, -1)
COUNT_SLICE = 50_000  # rows; some tens of milliseconds

PAYLOAD = 6  # its place in a row of `read_streams`
HEAD = 5  # the place of a stream's first job, after its key
PULL_STREAMS = ROWS_MAX  # of a look in degraded mode: each of them can be read
PULL_STREAMS_PER_TENANT = 16
SHALLOW_ROWS = 8  # for so many rows of a stream, or fewer, reading them is cheaper than a probe


class StreamRead(NamedTuple):
    """A wish to read the next jobs of one stream."""

    shard: ShardId
    key: StreamKey
    cursor: str
    limit: int


class QueuedRow(NamedTuple):
    """A place in the order of queued rows."""

    key: StreamKey
    id: JobId


class StreamWalk:
    """A walk over every stream of a shard that has a queued job, a page at a time.

    A page of rows shows the heads of many streams for the price of one look, where streams are
    shallow. Where one is deep it shows few; the page after it asks from stream to stream instead.
    """

    def __init__(self, shard: ShardId, page: int) -> None:
        self._shard = shard
        self._page = page
        self._after = _BEFORE_ALL
        self._is_deep_here = False
        self.is_over = False

    async def next_page(self, connection: Connection) -> dict[StreamKey, JobId]:
        """Streams in one order, and the id of each one's first job."""
        begin = {"shard": self._shard, "limit": self._page, **self._after._asdict()}
        if self._is_deep_here:
            rows = await fetch(connection, _SQL["streams_with_work"], **begin)
        else:
            rows = await fetch(connection, _SQL["next_queued"], **begin)
        heads: dict[StreamKey, JobId] = {}
        for row in rows:
            heads.setdefault(StreamKey._make(row[:HEAD]), JobId(row[HEAD]))
        self.is_over = len(rows) < self._page
        self._is_deep_here = len(heads) * SHALLOW_ROWS < len(rows)
        if heads:
            self._after = next(reversed(heads))
        return heads


async def read_streams(
    connection: Connection, reads: Sequence[StreamRead], light_bytes: int
) -> list[Found]:
    """What was found, stream by stream, up to the first job that is heavier than said."""
    rows = await fetch(connection, _SQL["read_streams"], light_bytes=light_bytes, **_wishes(reads))
    jobs: list[list[QueuedJob]] = [[] for _ in reads]
    keys = [read.key for read in reads]
    cut: set[int] = set()
    for row in rows:
        stream = row[0] - 1
        if row[PAYLOAD] is None:
            cut.add(stream)
        elif not cut or stream not in cut:
            jobs[stream].append(QueuedJob(row[1], *keys[stream], *row[2:]))
    return [Found(each, number in cut) for number, each in enumerate(jobs)]


async def read_streams_by_bytes(
    connection: Connection, reads: Sequence[StreamRead], budget_bytes: int
) -> list[Found]:
    """As `read_streams`, each up to so many bytes: jobs of any weight, and one in any case."""
    rows = await fetch(
        connection,
        _SQL["read_streams_by_bytes"],
        budget_bytes=budget_bytes,
        **_wishes(reads),
    )
    jobs: list[list[QueuedJob]] = [[] for _ in reads]
    for row in rows:
        jobs[row[0] - 1].append(QueuedJob(row[1], *reads[row[0] - 1].key, *row[2:]))
    return [Found(each, sum(len(job.payload) for job in each) >= budget_bytes) for each in jobs]


def _wishes(reads: Sequence[StreamRead]) -> dict[str, list[Any]]:
    of_keys = ("tenants", "pools", "types", "priorities", "lanes")
    rows = [(*read.key, read.cursor, read.limit, read.shard) for read in reads]
    return columns(rows, *of_keys, "cursors", "limits", "shards")


async def jobs_ahead(
    connection: Connection, shard: ShardId, key: StreamKey, job: JobId, limit: int
) -> int:
    """Jobs of the stream before this one, counted up to a limit."""
    ahead: int = await fetch_value(
        connection, _SQL["jobs_ahead"], shard=shard, id=job, limit=limit, **key._asdict()
    )
    return ahead


async def pull_heads(
    connection: Connection, shard: ShardId, pool: PoolId, after: TenantId
) -> list[StreamKey]:
    """Streams with work of a pool's tenants after one; fewer than `PULL_STREAMS`: of the last."""
    rows = await fetch(
        connection,
        _SQL["pull_heads"],
        shard=shard,
        pool=pool,
        tenant=after,
        per_tenant=PULL_STREAMS_PER_TENANT,
        limit=PULL_STREAMS,
    )
    return [StreamKey._make(row) for row in rows if row["pool"] == pool]


async def pull_jobs(connection: Connection, shard: ShardId, asks: Sequence[Ask]) -> list[QueuedJob]:
    """The first jobs of these streams, locked until the transaction ends."""
    of_keys = ("tenants", "pools", "types", "priorities", "lanes")
    wishes = columns([(*ask.key, ask.limit) for ask in asks], *of_keys, "limits")
    rows = await fetch(connection, _SQL["pull_jobs"], shard=shard, **wishes)
    return [QueuedJob(*row) for row in rows]


class QueuedCount(NamedTuple):
    """What one slice counted, and where the next begins; `after` is None when there is none."""

    depths: dict[tuple[TenantId, PoolId], int]  # by (tenant, pool)
    after: QueuedRow | None


async def count_slice(
    connection: Connection, shard: ShardId, after: QueuedRow | None, limit: int = COUNT_SLICE
) -> QueuedCount:
    """Count the next so many queued rows after one: a bounded statement, however deep the queue."""
    begin = after or QueuedRow(_BEFORE_ALL, LOWEST_JOB_ID)
    rows = await fetch(
        connection,
        _SQL["count_queued"],
        shard=shard,
        id=begin.id,
        limit=limit,
        **begin.key._asdict(),
    )
    depths = {(row["tenant"], row["pool"]): row["depth"] for row in rows}
    if sum(depths.values()) < limit:
        return QueuedCount(depths, None)
    last = rows[0]
    pool, tenant = last["last_pool"], last["last_tenant"]
    key = StreamKey(tenant, pool, last["type"], last["priority"], last["lane"])
    return QueuedCount(depths, QueuedRow(key, JobId(last["id"])))


async def count_queued(
    connection: Connection, shard: ShardId
) -> dict[tuple[TenantId, PoolId], int]:
    """Depth by (tenant, pool), slice by slice; what changes meanwhile is counted or not."""
    depths: dict[tuple[TenantId, PoolId], int] = {}
    after: QueuedRow | None = None
    while True:
        found, after = await count_slice(connection, shard, after)
        for key, depth in found.items():
            depths[key] = depths.get(key, 0) + depth
        if after is None:
            return depths
