"""Reading the backlog: streams and their heads, pages after a cursor."""

from __future__ import annotations

import itertools
import os
from collections import Counter

import pytest
from msgspec.structs import replace
from tests.store.rows import SHARD, add_job, add_jobs, new_job, own, schedule, start

from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import LOWEST_JOB_ID, JobId, PoolId, ShardId, TenantId, TypeId
from fairway.core.job import QueuedJob
from fairway.store.backlog import (
    StreamRead,
    StreamWalk,
    count_queued,
    count_slice,
    read_streams,
    read_streams_by_bytes,
)
from fairway.store.connections.database import Connection


async def walk(
    connection: Connection, page: int, shard: ShardId = SHARD
) -> list[dict[StreamKey, JobId]]:
    walking, pages = StreamWalk(shard, page), []
    while not walking.is_over:
        pages.append(await walking.next_page(connection))
    return pages


@pytest.mark.parametrize("depth", [1, 3, 40])
async def test_every_stream_is_found_with_its_first_job(connection: Connection, depth: int) -> None:
    """At any depth, some deep among shallow ones, and pages that end inside a stream."""
    term = await own(connection)
    heads = {}
    keys = itertools.product((1, 2), (1, 2), (1, 3), (0, 5), (0, 7))
    for number, key in enumerate(map(StreamKey._make, keys)):
        tenant, pool, type_id, priority, lane = key
        jobs = [
            new_job(tenant=tenant, pool=pool, type=type_id, priority=priority, lane=lane)
            for _ in range(depth if number % 3 else 1)
        ]
        await add_jobs(connection, *jobs)
        heads[key] = jobs[0].id
    started = await add_job(connection, tenant=9)
    await start(connection, started, term)
    asleep = await add_job(connection, tenant=10)
    await schedule(connection, asleep, due_in_seconds=60)

    for page in (1, 5, 20, 1000):
        pages = await walk(connection, page)
        assert sum(map(len, pages)) == len(heads), "none twice"
        assert {key: first for each in pages for key, first in each.items()} == heads
    assert await walk(connection, 5, ShardId(SHARD + 1)) == [{}]


async def test_deep_streams_are_stepped_over(connection: Connection) -> None:
    for tenant in range(30):
        await add_jobs(connection, *(new_job(tenant=tenant) for _ in range(50)))
    pages = await walk(connection, 20)
    assert [len(page) for page in pages[:2]] == [1, 20], "rows, then probes"
    assert len(pages) <= 6


async def read(connection: Connection, *reads: StreamRead) -> list[list[QueuedJob]]:
    """What was written, to compare: where it lies is the store's affair."""
    found = [part.jobs for part in await read_streams(connection, reads, 100)]
    by_bytes = await read_streams_by_bytes(connection, reads, 1 << 20)
    assert [part.jobs for part in by_bytes] == found, "light jobs are the same by either way"
    assert all(job.place for jobs in found for job in jobs)
    return [[replace(job, place=None) for job in jobs] for jobs in found]


async def test_a_read_of_light_jobs_stops_before_a_heavy_one(connection: Connection) -> None:
    sizes = [10, 100, 101, 10]
    jobs = [new_job(payload=b"x" * size) for size in sizes]
    await add_jobs(connection, *jobs)
    wish = StreamRead(SHARD, StreamKey(TenantId(1), PoolId(1), TypeId(1), 5), LOWEST_JOB_ID, 400)
    (found,) = await read_streams(connection, [wish], 100)
    assert ([job.id for job in found.jobs], found.is_cut) == ([job.id for job in jobs[:2]], True)


@pytest.mark.parametrize(
    ("budget_bytes", "most"), [(1, 1), (100_001, 2), (400_000, 4), (400_001, 4)]
)
async def test_a_read_by_bytes_ends_with_its_budget_and_brings_one_job_at_least(
    connection: Connection, budget_bytes: int, most: int
) -> None:
    jobs = [new_job(payload=os.urandom(100_000)) for _ in range(4)]  # too large for their page
    await add_jobs(connection, *jobs)
    wish = StreamRead(SHARD, StreamKey(TenantId(1), PoolId(1), TypeId(1), 5), LOWEST_JOB_ID, 400)
    (found,) = await read_streams_by_bytes(connection, [wish], budget_bytes)
    assert [job.payload for job in found.jobs] == [job.payload for job in jobs[:most]]
    assert found.is_cut == (budget_bytes <= 400_000)


async def test_reads_go_on_after_their_cursor_in_order(connection: Connection) -> None:
    jobs = [new_job(tenant=1) for _ in range(5)]
    others = [new_job(tenant=2) for _ in range(3)]
    await add_jobs(connection, *reversed(jobs), *others)
    one, two = (
        StreamKey(TenantId(1), PoolId(1), TypeId(1), 5),
        StreamKey(TenantId(2), PoolId(1), TypeId(1), 5),
    )
    (first,) = await read(connection, StreamRead(SHARD, one, LOWEST_JOB_ID, 2))
    assert first == jobs[:2]
    reads = [StreamRead(SHARD, one, first[-1].id, 10), StreamRead(SHARD, two, others[0].id, 1)]
    assert await read(connection, *reads) == [jobs[2:], [others[1]]]


async def test_a_read_sees_queued_jobs_of_its_stream_alone(connection: Connection) -> None:
    term, mine = await own(connection), await add_job(connection)
    for change in ({"tenant": 2}, {"pool": 2}, {"type": 2}, {"priority": 6}):
        await add_job(connection, **change)
    await start(connection, await add_job(connection), term)
    await schedule(connection, await add_job(connection), due_in_seconds=60)
    wish = StreamRead(SHARD, StreamKey(TenantId(1), PoolId(1), TypeId(1), 5), LOWEST_JOB_ID, 100)
    assert await read(connection, wish) == [[mine]]


async def test_depth_is_counted_by_tenant_and_pool(connection: Connection) -> None:
    await add_jobs(connection, new_job(), new_job(), new_job(pool=2), new_job(tenant=2))
    assert await count_queued(connection, SHARD) == {(1, 1): 2, (1, 2): 1, (2, 1): 1}


async def test_depth_is_counted_in_slices_that_may_end_anywhere(connection: Connection) -> None:
    """A statement over the whole of a deep queue would run into its time-out, at every try."""
    jobs = [new_job(tenant=n % 3, pool=n % 2 + 1, priority=n % 4, lane=n % 5) for n in range(60)]
    await add_jobs(connection, *jobs)
    whole = await count_queued(connection, SHARD)
    assert sum(whole.values()) == 60
    for limit in (1, 7, 59, 60, 61):
        slices = [await count_slice(connection, SHARD, None, limit)]
        while slices[-1].after is not None:
            slices.append(await count_slice(connection, SHARD, slices[-1].after, limit))
        assert len(slices) == 60 // limit + 1
        summed: Counter[tuple[int, int]] = Counter()
        for found in slices:
            summed.update(found.depths)
        assert summed == whole, limit
