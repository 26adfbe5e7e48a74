"""The order of lanes: the same as if all were looked at, at the cost of those that can be run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Set
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import POOL, exhaust, make
from tests.core.plain_lanes import PlainLanes
from tests.core.timed_backlog import TimedBacklog
from tests.properties import tried
from tests.steps import steps_of

from fairway.core.backlog.firsts import Firsts
from fairway.core.backlog.holds import Hold, Holds
from fairway.core.backlog.lane_order import OLD_ENTRIES
from fairway.core.backlog.lanes import LANES_MAX, PREPAID_US, LaneShare
from fairway.core.backlog.streams import Stream, StreamKey, WindowLimits, key_of
from fairway.core.backlog.tenant_backlog import TenantBacklog
from fairway.core.ids import ShardId, TenantId, TypeId
from fairway.core.job import QueuedJob

TENANT = TenantId(1)
DEEDS = 300
LANES = 8
LIMITS = WindowLimits(jobs_total=60, jobs_per_stream=3, jobs_per_read=4)
SECOND = 1_000_000


def deeds_of(dice: random.Random) -> Iterator[tuple[str, Any]]:
    """What may happen to a tenant with eight customers and a few types of jobs, or many."""
    types = range(1, dice.choice((5, 16)))
    for _ in range(DEEDS):
        some = dice.randrange(100)
        yield dice.choice(
            [
                ("arrive", [(dice.randrange(LANES), dice.choice(types), dice.choice((4, 5)))]),
                ("arrive", [(some % LANES, dice.choice(types), 5) for _ in range(some % 6)]),
                (
                    "grant",
                    (set(dice.sample(types, dice.randrange(1, len(types)))), dice.randrange(1, 6)),
                ),
                ("grant", ({dice.choice(types)}, 1)),
                ("end", [dice.randrange(100) for _ in range(some % 4)]),
                ("end", [some]),
                ("wait", dice.choice((1, 1000, SECOND, 3 * SECOND))),
                ("put_back", some),
                ("cancel", some),
                ("read", dice.randrange(1, 6)),
                ("hold" if some < 20 else "read", some % 5),
                ("runnable" if some < 20 else "read", 1 + some % 4),
                ("prune", None),
            ]
        )


class World:
    """One tenant's jobs, shared out by the lanes that are given."""

    def __init__(self, kind: type[LaneShare]) -> None:
        self.now_us = 0
        self.backlog = TimedBacklog(LIMITS, lambda: self.now_us)
        self.kind = kind
        self.waiting: dict[str, QueuedJob] = {}
        self.running: dict[str, QueuedJob] = {}
        self.taken: list[str] = []
        self._number = 0

    def arrive(self, places: list[tuple[int, int, int]]) -> None:
        jobs = []
        for lane, type_, priority in places:
            self._number += 1
            jobs.append(
                make(self._number, ms=self._number, lane=lane, type=type_, priority=priority)
            )
        self.waiting |= {job.id: job for job in jobs}
        self.backlog.arrived(jobs)

    def grant(self, asked: tuple[set[TypeId], int]) -> None:
        types, most = asked
        take = self.backlog.taker(POOL, types, self.running, lambda tenant: None, self.now_us)
        for _ in range(most):
            if (job := take(TENANT)) is None:
                return
            self.taken.append(job.id)
            self.running[job.id] = self.waiting.pop(job.id)

    def end(self, places: list[int]) -> None:
        for place in places:
            if self.running:
                self.backlog.run_ended(self.running.pop(self._one_of(self.running, place)))

    def put_back(self, place: int) -> None:
        if self.running:
            job = self.running.pop(self._one_of(self.running, place))
            self.waiting[job.id] = job
            self.backlog.run_ended(job)
            self.backlog.put_back(job)

    def cancel(self, place: int) -> None:
        if self.waiting:
            job = self.waiting.pop(self._one_of(self.waiting, place))
            self.backlog.remove(job.id, key_of(job))

    def hold(self, type_: int) -> None:
        self.backlog.runnable.set_holds(Holds([Hold(type=TypeId(type_))] if type_ else []))

    def runnable(self, type_: int) -> None:
        """All types but one are run by somebody."""
        self.backlog.runnable.set_runnable(
            {None: frozenset(map(TypeId, set(range(1, 16)) - {type_}))}
        )

    def read(self, streams_max: int) -> None:
        for stream, asked in self.backlog.reads.begin(streams_max):
            rows = [job for job in self.waiting.values() if key_of(job) == stream.key]
            rows = sorted((job for job in rows if job.id > stream.cursor), key=lambda job: job.id)
            self.backlog.reads.end(stream, rows[:asked], asked, self.running)

    def prune(self, _: None) -> None:
        exhaust(self.backlog.pruning())

    def wait(self, us: int) -> None:
        self.now_us += us

    def do(self, deed: str, what: Any) -> None:
        tenants = self.backlog._tenants
        if (POOL, TENANT) not in tenants:  # at first, and once it was forgotten
            tenants[POOL, TENANT] = TenantBacklog()
            tenants[POOL, TENANT].lanes = self.kind()
        getattr(self, deed)(what)

    @staticmethod
    def _one_of(jobs: dict[str, QueuedJob], place: int) -> str:
        return sorted(jobs)[place % len(jobs)]


@given(st.integers(0, 1 << 32))
@tried(50)
def test_lanes_go_in_the_order_of_the_plain_way(seed: int) -> None:
    plain, real = World(PlainLanes), World(LaneShare)
    for deed, what in deeds_of(random.Random(seed)):
        plain.do(deed, what)
        real.do(deed, what)
        assert real.taken == plain.taken
    assert_bounded(real)


def assert_bounded(world: World) -> None:
    tenant = world.backlog._tenants.get((POOL, TENANT))
    if tenant is None or tenant.lanes is None or (by_type := tenant.lanes._by_type) is None:
        return
    most, types = len(tenant.lanes.lanes), {stream.type for stream in tenant.streams.values()}
    assert set(by_type._orders) <= types
    for order in (*by_type._orders.values(), by_type.hollow, tenant.lanes._waiting):
        assert len(order.marks) <= most
        assert len(order) <= 4 * LANES + OLD_ENTRIES
    assert len(by_type._eased.lanes) <= LANES + OLD_ENTRIES
    assert {one for full in by_type._full.values() for one in full} <= {*tenant.streams.values()}


# -- how much is looked at -----------------------------------------------------------------------


def backlog_of(*jobs: QueuedJob) -> TimedBacklog:
    backlog = TimedBacklog(WindowLimits(), lambda: SECOND)
    backlog.arrived(jobs)
    return backlog


def take(backlog: TimedBacklog, types: Set[TypeId]) -> QueuedJob | None:
    return backlog.take(POOL, TENANT, types, ())


def cannot_be_run(count: int) -> list[QueuedJob]:
    return [make(lane, ms=lane, type=2, lane=lane) for lane in range(1, count + 1)]


def test_lanes_that_a_worker_cannot_run_cost_it_nothing() -> None:
    few, many = backlog_of(*cannot_be_run(1)), backlog_of(*cannot_be_run(LANES_MAX))
    assert take(many, {TypeId(1)}) is take(few, {TypeId(1)}) is None
    assert steps_of(lambda: take(many, {TypeId(1)})) == steps_of(lambda: take(few, {TypeId(1)}))


def test_one_lane_it_can_run_is_found_among_them_all() -> None:
    """Whatever it has had: theirs have had less, and would be asked first."""
    mine = [make(5000 + n, ms=5000 + n, lane=LANES_MAX) for n in range(8)]
    few = backlog_of(*cannot_be_run(1), *mine)
    many = backlog_of(*cannot_be_run(LANES_MAX - 1), *mine)
    for _ in range(3):
        assert take(many, {TypeId(1)}) == take(few, {TypeId(1)})
    assert steps_of(lambda: take(many, {TypeId(1)})) <= 1.2 * steps_of(
        lambda: take(few, {TypeId(1)})
    )


def test_the_first_worker_of_few_types_finds_very_many_lanes_sorted() -> None:
    backlog = backlog_of(*cannot_be_run(LANES_MAX))
    assert steps_of(lambda: take(backlog, {TypeId(1)})) < 1000


@pytest.mark.parametrize("types", [frozenset({TypeId(1)}), frozenset(map(TypeId, range(1, 3000)))])
def test_a_lane_of_many_types_costs_no_more_for_each_that_ends(types: frozenset[TypeId]) -> None:
    """Its cost falls in the eyes of workers of every type: they learn it when they ask."""
    backlog = backlog_of(*[make(n, ms=n, type=n, lane=1) for n in range(1, 3000)])
    job = take(backlog, types)
    assert job is not None
    assert steps_of(lambda: backlog.run_ended(job)) < 1000


def test_a_grant_of_many_jobs_compares_all_types_once() -> None:
    jobs = [make(n, ms=n, type=1 + n % 500, lane=1 + n % 7) for n in range(3500)]
    backlog, types = backlog_of(*jobs), frozenset(map(TypeId, range(1, 501)))

    taker = backlog.taker(POOL, types, (), lambda tenant: None, SECOND)

    def grant(count: int) -> int:
        return steps_of(lambda: [taker(TENANT) for _ in range(count)])

    grant(20)  # looks at the streams of every lane twice, too
    assert grant(100) < 100 * 1000


def test_what_a_customer_did_not_use_is_gone_with_its_streams() -> None:
    """Another's shard took them while one of its jobs ran: it was idle since, as any other."""
    share = LaneShare()
    streams = [
        Stream(StreamKey(TENANT, POOL, TypeId(type_), 5, type_), ShardId(0)) for type_ in (1, 2, 3)
    ]
    idle, busy, _ = streams
    for stream in streams:
        share.add(stream)
        stream.window.append(make(stream.type, type=stream.type, lane=stream.key.lane))
        share.wake(stream, 0)
    share.started(1, "a", 0)
    assert share.next_stream(Firsts({TypeId(2)}), 0) is busy
    share.drop(idle)
    for n in range(9):
        assert share.next_stream(Firsts({TypeId(2)}), 0) is busy
        share.started(2, str(n), 0)
    share.add(idle)
    share.wake(idle, 0)
    assert share.lanes[1].cost_us(0) == 8 * PREPAID_US, "as much as who went last"
