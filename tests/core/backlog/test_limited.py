"""Jobs with limits in the backlog: never beyond a limit, never forgotten, in nobody's way."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace
from tests.core.backlog.test_backlog import POOL, make
from tests.core.timed_backlog import TimedBacklog
from tests.properties import tried

from fairway.core.backlog import limited, parked
from fairway.core.backlog.backlog import ASIDE_PER_TAKE
from fairway.core.backlog.key_limits import KeyLimit, pack, unpack
from fairway.core.backlog.streams import WindowLimits, key_of
from fairway.core.ids import ShardId, TenantId, TypeId
from fairway.core.job import QueuedJob

LARGE = WindowLimits(jobs_total=10_000, bytes_total=1 << 20, jobs_per_stream=5_000)
TYPES = {TypeId(1), TypeId(2)}


def limited_job(number: int, *limits: tuple[str, int], **more: Any) -> QueuedJob:
    packed = pack([KeyLimit(key, most) for key, most in limits])
    return replace(make(number, **more), limits=packed)


class World:
    """A backlog with a store behind it, and workers that take all they can."""

    def __init__(self, limits: WindowLimits = LARGE) -> None:
        self.now_us = 0
        self.backlog = TimedBacklog(limits, lambda: self.now_us)
        self.queued: dict[str, QueuedJob] = {}
        self.running: dict[str, QueuedJob] = {}

    def arrive(self, *jobs: QueuedJob) -> None:
        self.queued |= {job.id: job for job in jobs}
        self.backlog.arrived(jobs)

    def take(self, tenant: int = 1) -> QueuedJob | None:
        job = self.backlog.take(POOL, tenant, TYPES, self.running)
        if job is not None:
            assert self.queued.pop(job.id) == job
            self.running[job.id] = job
        return job

    def take_all(self, tenant: int = 1) -> list[QueuedJob]:
        taken = []
        while (job := self.take(tenant)) is not None:
            taken.append(job)
        return taken

    def end(self, job: QueuedJob) -> None:
        del self.running[job.id]
        self.limit_ended(job)

    def limit_ended(self, job: QueuedJob) -> None:
        """As `LeaseTable.release` does."""
        if job.limits is not None:
            self.backlog.let_out(self.backlog.limited.ended(job, self.now_us), self.now_us)

    def read(self) -> None:
        """Everything that windows want, as the store has it."""
        while wishes := self.backlog.reads.begin(10):
            for stream, asked in wishes:
                rows = sorted(
                    job
                    for job in self.queued.values()
                    if key_of(job) == stream.key and job.id > stream.cursor
                )
                self.backlog.reads.end(stream, rows[:asked], asked, self.running)

    def upkeep(self) -> None:
        self.now_us += limited.RECHECK_US
        self.backlog.recheck_limits(self.now_us)
        self.read()


def test_a_full_key_keeps_nobody_else_of_its_stream_waiting() -> None:
    world = World()
    jobs = [limited_job(n, ("a", 1)) for n in range(3)] + [limited_job(3, ("b", 1)), make(4)]
    world.arrive(*jobs)
    assert world.take_all() == [jobs[0], jobs[3], jobs[4]]
    assert world.backlog.counts.depth(TenantId(1), [POOL]) == 2
    world.end(jobs[0])
    assert world.take_all() == [jobs[1]]
    world.end(jobs[3])
    assert world.take_all() == []


def test_limits_of_one_tenant_do_not_touch_another() -> None:
    world = World()
    world.arrive(limited_job(1, ("a", 1)), limited_job(2, ("a", 1), tenant=TenantId(2)))
    assert len(world.take_all(1)) == len(world.take_all(2)) == 1


def test_a_cancelled_job_leaves_its_place_in_line() -> None:
    world = World()
    jobs = [limited_job(n, ("a", 1)) for n in range(3)]
    world.arrive(*jobs)
    world.take_all()
    world.backlog.remove(jobs[1].id, key_of(jobs[1]))
    world.end(jobs[0])
    assert world.take_all() == [jobs[2]]


def test_what_stepped_aside_is_no_news_to_a_read_or_a_sweep() -> None:
    world = World()
    jobs = [limited_job(n, ("a", 1)) for n in range(3)]
    world.arrive(*jobs)
    world.take_all()
    assert world.backlog.knows(key_of(jobs[1]), jobs[1].id)
    world.backlog.noticed(key_of(jobs[1]), jobs[1].id)
    world.read()
    world.end(jobs[0])
    assert world.take_all() == [jobs[1]]


def test_a_shard_that_went_leaves_nothing() -> None:
    world = World()
    jobs = [limited_job(n, ("a", 1)) for n in range(3)]
    world.arrive(*jobs)
    world.take_all()
    world.backlog.forget_shard(ShardId(0))
    assert world.backlog.underway.news([jobs[1]], None, (), 0) == [jobs[1]]
    world.end(jobs[0])
    assert world.take_all() == []


def test_a_place_is_used_though_who_was_let_out_for_it_waits_for_another_key() -> None:
    world = World()
    both, other = limited_job(2, ("a", 1), ("b", 1)), limited_job(3, ("a", 1))
    first = [limited_job(0, ("a", 1)), limited_job(1, ("b", 1))]
    world.arrive(*first, both, other)
    assert world.take_all() == first
    world.end(first[0])
    world.take_all()
    world.upkeep()
    assert other.id in world.running or world.take_all() == [other]


def test_nobody_is_held_up_by_thousands_that_step_aside() -> None:
    world = World()
    jobs = [limited_job(n, ("a", 1)) for n in range(3 * ASIDE_PER_TAKE)]
    world.arrive(*jobs)
    assert world.take() == jobs[0]
    before = world.backlog.counts.ready(POOL, TenantId(1))
    assert world.take() is None
    assert before - world.backlog.counts.ready(POOL, TenantId(1)) == ASIDE_PER_TAKE
    assert world.backlog.recheck_limits(0) == {(POOL, TenantId(1))}


def test_without_room_to_step_aside_a_stream_waits_in_the_store_and_goes_on(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(parked, "JOBS_PER_TENANT", 4)
    world = World()
    world.arrive(*[limited_job(n, ("a", 1)) for n in range(40)])
    order = []
    for _ in range(80):
        order += [job.id for job in world.take_all()]
        assert len(world.running) <= 1
        for job in list(world.running.values()):
            world.end(job)
        world.upkeep()
    assert order == sorted(order)
    assert (len(order), world.queued) == (40, {})


KEYS = st.dictionaries(st.sampled_from("ab"), st.integers(1, 2), min_size=1, max_size=2)


class LimitedBacklog(RuleBasedStateMachine):
    """Jobs come, start, end and are cancelled; little room to step aside, small windows."""

    def __init__(self) -> None:
        super().__init__()
        self.most_before, parked.JOBS_PER_TENANT = parked.JOBS_PER_TENANT, 3
        self.world = World(WindowLimits(jobs_total=8, bytes_total=1000, jobs_per_stream=4))
        self.number = 0

    def teardown(self) -> None:
        for _ in range(60):  # whatever happened: all that is left runs
            self.ends_all()
            self.world.upkeep()
            for tenant in (1, 2):
                self.world.take_all(tenant)
            self.never_beyond()
            if not self.world.queued:
                break
        parked.JOBS_PER_TENANT = self.most_before
        assert self.world.queued == {}

    def ends_all(self) -> None:
        for job in list(self.world.running.values()):
            self.world.end(job)

    @rule(keys=KEYS, tenant=st.sampled_from([1, 1, 2]), lane=st.sampled_from([0, 0, 7]))
    def comes(self, keys: dict[str, int], tenant: int, lane: int) -> None:
        self.number += 1
        more = {"tenant": TenantId(tenant), "lane": lane}
        self.world.arrive(limited_job(self.number, *keys.items(), **more))

    @rule()
    def comes_plain(self) -> None:
        self.number += 1
        self.world.arrive(make(self.number))

    @rule(tenant=st.sampled_from([1, 2]))
    def starts(self, tenant: int) -> None:
        self.world.take(tenant)

    @precondition(lambda self: self.world.running)
    @rule(data=st.data())
    def ends(self, data: st.DataObject) -> None:
        self.world.end(data.draw(st.sampled_from(sorted(self.world.running.values()))))

    @precondition(lambda self: self.world.queued)
    @rule(data=st.data())
    def is_cancelled(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(sorted(self.world.queued.values())))
        del self.world.queued[job.id]
        self.world.backlog.remove(job.id, key_of(job))

    @rule()
    def time_passes(self) -> None:
        self.world.upkeep()

    @invariant()
    def never_beyond(self) -> None:
        """What runs beside a job that started last is within its limits: counts never exceed 2."""
        found: Counter[tuple[TenantId, str]] = Counter()
        for job in self.world.running.values():
            found.update((job.tenant, one.key) for one in unpack(job.limits or b"[]"))
        assert all(count <= 2 for count in found.values())

    @invariant()
    def counts_agree(self) -> None:
        backlog = self.world.backlog
        aside = sum(one.parked for one in backlog._tenants.values())
        assert aside == len(backlog.limited._parked)
        assert set(backlog.limited._parked.names) <= set(self.world.queued)


LimitedBacklog.TestCase.settings = tried(60, stateful_step_count=30)
TestLimitedBacklog = LimitedBacklog.TestCase


def rated_job(number: int, key: str, most: int, per_ms: int) -> QueuedJob:
    return replace(make(number), limits=pack([KeyLimit(key, most, per_ms)]))


def test_a_rate_lets_out_as_its_while_passes() -> None:
    world = World()
    world.arrive(*[rated_job(n, "a", 2, 1000) for n in range(6)], make(9))
    starts = list[int]()
    for _ in range(40):
        starts += [world.now_us for job in world.take_all() if job.limits]
        for job in list(world.running.values()):
            world.end(job)
        world.now_us += 100_000
        world.backlog.recheck_limits(world.now_us)
    assert len(starts) == 6
    assert all(sum(0 <= other - start < 1_000_000 for other in starts) <= 2 for start in starts)
    assert starts[-1] <= 2_300_000  # and no later than it must
    assert world.queued == {}


def test_whoever_looks_learns_when_to_look_again() -> None:
    world = World()
    world.arrive(*[rated_job(n, "a", 1, 500) for n in range(2)])
    world.take_all()
    assert world.backlog.limited.wants_a_look
    assert world.backlog.limited.rest_us(world.now_us) == 500_000
    assert world.backlog.recheck_limits(world.now_us) == set()
    assert not world.backlog.limited.wants_a_look
    assert world.backlog.recheck_limits(500_000) == {(POOL, TenantId(1))}
