"""Who is read into memory: a crowd waits outside, and whoever fills the memory starves nobody."""

from __future__ import annotations

from itertools import accumulate, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.timed_backlog import TimedBacklog

from fairway.core.backlog.reading import READ_BYTES_MAX, READ_JOBS_MIN, Budget, Found
from fairway.core.backlog.streams import StreamKey, WindowLimits, key_of
from fairway.core.ids import LOWEST_JOB_ID, Epoch, PoolId, ShardId, TenantId, TypeId, make_job_id
from fairway.core.job import QueuedJob

POOL = PoolId(1)
PAID, FREE_FROM = 1, TenantId(100)
START_MS = 1_700_000_000_000


def make(number: int, tenant: int, *, size: int = 2, lane: int = 0, pool: int = POOL) -> QueuedJob:
    job_id = make_job_id(ShardId(0), START_MS + number, number, 0)
    return QueuedJob(
        job_id,
        TenantId(tenant),
        PoolId(pool),
        TypeId(1),
        5,
        lane,
        Epoch(0),
        0,
        0,
        None,
        b"x" * size,
    )


class World:
    """A backlog over a store that is a list of jobs; time goes by a second at a time."""

    def __init__(self, limits: WindowLimits, jobs: list[QueuedJob]) -> None:
        self.seconds = 0
        self.store = sorted(jobs)
        self.backlog = TimedBacklog(limits, lambda: self.seconds * 1_000_000)
        self.number = len(jobs)

    def hint(self, *tenants: int, pool: int = POOL) -> None:
        for tenant in tenants:
            self.backlog.hinted(
                StreamKey(TenantId(tenant), PoolId(pool), TypeId(1), 5), make(0, tenant).id
            )

    def free(self, *tenants: int) -> None:
        for tenant in tenants:
            streams = self.backlog.counts.streams_of(TenantId(tenant), [POOL, PoolId(2)])
            self.backlog.reading.set_deferrable(TenantId(tenant), True, streams)

    def crowd(self, *pools: int) -> None:
        self.backlog.reading._is_crowded = lambda pool: pool in pools

    def read(self, streams_max: int = 10) -> dict[int, int]:
        """One round of reads; answers how many jobs were asked for, by tenant."""
        wishes = self.backlog.reads.begin(streams_max)
        for stream, asked in wishes:
            found = [job for job in self.store if key_of(job) == stream.key]
            later = [job for job in found if job.id > stream.cursor]
            self.backlog.reads.end(stream, later[:asked], asked, ())
        return {stream.key.tenant: asked for stream, asked in wishes}

    def take(self, tenant: int) -> QueuedJob | None:
        job = self.backlog.take(POOL, tenant, {TypeId(1)}, ())
        if job is not None:
            self.store.remove(job)
        return job


def crowd_of(count: int, jobs_each: int = 1) -> list[QueuedJob]:
    return [make(n, FREE_FROM + n % count) for n in range(count * jobs_each)]


def test_a_crowd_waits_outside_and_paid_tenants_do_not() -> None:
    world = World(WindowLimits(), [*crowd_of(30), *(make(1000 + n, PAID) for n in range(500))])
    world.free(*range(FREE_FROM, FREE_FROM + 30))
    world.crowd(POOL)
    world.hint(*range(FREE_FROM, FREE_FROM + 30), PAID)
    assert world.read() == {PAID: WindowLimits().jobs_per_read}
    assert not world.backlog.reads.are_wanted
    assert world.backlog.reading.is_waited_for


def test_some_come_in_even_to_a_crowded_pool_in_the_order_they_came() -> None:
    world = World(WindowLimits(), crowd_of(30))
    world.free(*range(FREE_FROM, FREE_FROM + 30))
    world.crowd(POOL)
    world.hint(*range(FREE_FROM, FREE_FROM + 30))
    for first in (100, 110, 120):
        assert list(world.read()) == list(range(first, first + 10))
    assert not world.backlog.reading.is_waited_for


def test_a_crowd_in_one_pool_keeps_nobody_out_of_another() -> None:
    world = World(WindowLimits(), [*crowd_of(30), make(1000, FREE_FROM, pool=2)])
    world.free(*range(FREE_FROM, FREE_FROM + 30))
    world.crowd(POOL)
    world.hint(*range(FREE_FROM, FREE_FROM + 30))
    world.hint(FREE_FROM, pool=2)
    assert world.backlog.reads.are_wanted
    assert world.read() == {FREE_FROM: READ_JOBS_MIN}
    assert world.backlog.counts.ready(PoolId(2), FREE_FROM) == 1


def test_crowds_of_two_pools_come_in_side_by_side() -> None:
    world = World(WindowLimits(), [])
    world.free(*range(FREE_FROM, FREE_FROM + 60))
    world.crowd(POOL, 2)
    world.hint(*range(FREE_FROM, FREE_FROM + 30))
    world.hint(*range(FREE_FROM + 30, FREE_FROM + 60), pool=2)
    assert list(world.read()) == [*range(100, 105), *range(130, 135)]


def test_one_of_the_crowd_that_begins_to_pay_waits_no_longer() -> None:
    world = World(WindowLimits(), crowd_of(30))
    world.free(*range(FREE_FROM, FREE_FROM + 30))
    world.crowd(POOL)
    world.hint(*range(FREE_FROM, FREE_FROM + 30))
    world.backlog.reading.set_deferrable(
        TenantId(120), False, world.backlog.counts.streams_of(TenantId(120), [POOL])
    )
    assert list(world.read()) == [120]


def test_reads_are_as_large_as_the_room_allows() -> None:
    limits = WindowLimits(jobs_total=1000, jobs_per_read=400)
    world = World(limits, [make(n, 1 + n % 3) for n in range(3000)])
    world.hint(1)
    assert world.read() == {1: 400}  # alone, whatever the number of tenants that want nothing
    world.hint(2, 3)
    assert world.read() == {2: 200, 3: 200}


@pytest.mark.parametrize("limits", [
    WindowLimits(jobs_total=300, jobs_per_stream=300, jobs_per_read=50),
    WindowLimits(jobs_total=10_000, bytes_total=300 * 20, jobs_per_stream=300, jobs_per_read=50),
])  # fmt: skip
def test_one_that_fills_the_memory_and_may_not_run_starves_nobody(limits: WindowLimits) -> None:
    hog = [make(n, 7, size=20, lane=n % 5) for n in range(1000)]
    world = World(limits, hog)
    world.backlog.arrived(hog)
    assert world.backlog.windows.is_full
    late = make(2000, 8)
    world.store.append(late)
    world.backlog.arrived([late])
    assert world.take(8) is None  # there was no room for it
    world.read()
    assert world.take(8) == late


@settings(deadline=None)
@given(
    held=st.lists(st.integers(1, 60), min_size=2, max_size=12),
    total=st.integers(20, 200),
)
def test_whoever_has_jobs_comes_to_run(held: list[int], total: int) -> None:
    """All but the last are at their caps: nothing of theirs is ever taken."""
    limits = WindowLimits(jobs_total=total, jobs_per_stream=60, jobs_per_read=30)
    jobs = [
        make(100 * tenant + n, 1 + tenant) for tenant, many in enumerate(held) for n in range(many)
    ]
    world = World(limits, jobs)
    world.backlog.arrived(jobs)
    last, left = len(held), held[-1]
    for _ in range(20 * (len(held) + left)):
        world.seconds += 1
        world.read()
        while world.take(last):
            left -= 1
    assert left == 0


def test_windows_are_kept_while_everybody_has_some() -> None:
    limits = WindowLimits(jobs_total=60, jobs_per_stream=60, jobs_per_read=30)
    jobs = [make(n, 1 + n % 6) for n in range(60)]
    world = World(limits, jobs)
    world.backlog.arrived(jobs)
    world.hint(1)
    assert world.read() == {}
    assert world.backlog.windows.jobs_held == 60
    assert all(
        s.cursor > LOWEST_JOB_ID for s in world.backlog.counts.streams_of(TenantId(1), [POOL])
    )


def weighed_read(world: World, streams_max: int) -> int:
    """One round as the refiller does it; answers how many bytes it brought."""
    wishes = world.backlog.reads.begin(streams_max)
    budget = world.backlog.reads.budget_of(wishes)
    total = 0
    for stream, limit in wishes:
        later = [j for j in world.store if key_of(j) == stream.key and j.id > stream.cursor]
        found = (by_bytes if stream.heavy else by_count)(later[:limit], budget)
        total += sum(len(job.payload) for job in found.jobs)
        world.backlog.reads.end_weighed((stream, limit), found, budget, ())
    return total


def by_count(jobs: list[QueuedJob], budget: Budget) -> Found:
    light = list(takewhile(lambda job: len(job.payload) <= budget.light_bytes, jobs))
    return Found(light, is_cut=len(light) < len(jobs))


def by_bytes(jobs: list[QueuedJob], budget: Budget) -> Found:
    before = accumulate((len(job.payload) for job in jobs), initial=0)
    near = [job for job, bytes_ in zip(jobs, before, strict=False) if bytes_ < budget.each_bytes]
    return Found(near, is_cut=sum(len(job.payload) for job in near) >= budget.each_bytes)


@settings(deadline=None)
@given(
    sizes=st.lists(st.one_of(st.integers(2, 30), st.integers(2, 3000)), min_size=1, max_size=80),
    tenants=st.integers(1, 6),
    bytes_total=st.integers(1, 6000),
)
def test_windows_hold_no_more_bytes_than_they_may_and_every_job_comes(
    sizes: list[int], tenants: int, bytes_total: int
) -> None:
    limits = WindowLimits(bytes_total=bytes_total, jobs_per_read=20)
    jobs = [make(n, 1 + n % tenants, size=size) for n, size in enumerate(sizes)]
    world = World(limits, jobs)
    world.hint(*range(1, tenants + 1))
    for _ in range(20 * len(jobs) + 20):
        room = max(bytes_total - world.backlog.windows.bytes_held, 0)
        read = weighed_read(world, streams_max=4)
        assert read <= min(room, READ_BYTES_MAX) + 4 * max(sizes)
        assert world.backlog.windows.bytes_held <= bytes_total + 4 * max(sizes)
        if not world.backlog.reads.are_wanted or world.backlog.windows.is_full:
            world.seconds += 1
            for tenant in range(1, tenants + 1):
                world.take(tenant)
    assert world.store == []


def test_a_tenant_with_very_many_streams_keeps_nobody_from_being_read() -> None:
    world = World(WindowLimits(), [make(1, 2)])
    for lane in range(1000):
        world.backlog.hinted(StreamKey(TenantId(1), POOL, TypeId(1), 5, lane), make(0, 1).id)
    world.hint(2, 3)
    assert set(world.read(24)) == {1, 2, 3}
    rounds = [world.read(24) for _ in range(3)]
    assert [set(asked) for asked in rounds] == [{1}] * 3
    assert world.backlog.reading.wanting == 1000 - (24 - 2) - 3 * 24
