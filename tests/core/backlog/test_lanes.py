"""Lanes: equal slot-time for a tenant's own customers, whatever their jobs are like."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import POOL, make
from tests.core.lane_world import SECOND, LaneWorld, Load
from tests.core.timed_backlog import TimedBacklog

from fairway.core.backlog.firsts import Firsts
from fairway.core.backlog.holds import Hold, Holds
from fairway.core.backlog.lane_order import OLD_ENTRIES
from fairway.core.backlog.lanes import LANES_MAX, PREPAID_US, LaneShare, lane_of
from fairway.core.backlog.streams import Stream, StreamKey, WindowLimits
from fairway.core.ids import ShardId, TenantId, TypeId

RUNS_US = st.sampled_from([SECOND // 10, SECOND // 3, SECOND, 5 * SECOND, 34 * SECOND])
few = settings(max_examples=20, deadline=None)


@given(st.text(min_size=1))
def test_a_key_has_a_lane_and_no_key_has_lane_0(key: str) -> None:
    assert 1 <= lane_of(key) <= LANES_MAX
    assert lane_of(None) == lane_of("") == 0


def test_keys_keep_their_lanes_for_ever() -> None:
    """Jobs on disk carry the number: changing the hash would split a customer in two."""
    assert [lane_of(key) for key in ("acme", "umbrella", "ü")] == [969, 724, 623]


@given(st.integers(2, 6), st.lists(RUNS_US, min_size=2, max_size=4))
@few
def test_backlogged_lanes_get_equal_slot_time(slots: int, runs_us: list[int]) -> None:
    """Off by no more than what is in flight: a job cannot be divided."""
    world = LaneWorld(slots, {lane: Load(run_us) for lane, run_us in enumerate(runs_us)})
    world.run(300 * SECOND)
    fair_us = slots * 300 * SECOND // len(runs_us)
    longest_us = max(runs_us) + PREPAID_US
    for lane in world.loads:
        assert abs(world.received_us[lane] - fair_us) <= slots * longest_us


def test_34_times_longer_jobs_get_no_more() -> None:
    world = LaneWorld(10, {0: Load(SECOND), 1: Load(34 * SECOND)}).run(1800 * SECOND)
    assert world.share(0) == pytest.approx(0.5, abs=0.03)


def test_jobs_without_a_key_are_a_customer_like_the_others() -> None:
    world = LaneWorld(4, {0: Load(SECOND), 1: Load(SECOND), 2: Load(SECOND)}).run(120 * SECOND)
    for lane in range(3):
        assert world.share(lane) == pytest.approx(1 / 3, abs=0.02)


@given(RUNS_US, st.integers(1, 300))
@few
def test_a_lane_that_was_idle_banks_nothing(run_us: int, idle_seconds: int) -> None:
    world = LaneWorld(4, {1: Load(SECOND), 2: Load(run_us)}).run(SECOND)
    world.loads[2] = Load(run_us, waiting=0)
    while world.queued[2]:
        world.run(world.now_us + SECOND)
    world.run(world.now_us + idle_seconds * SECOND)
    world.forget_the_past()
    world.loads |= {2: Load(run_us), 3: Load(SECOND)}  # one comes back, one was never there
    world.run(world.now_us + 200 * SECOND)
    fair_us = 4 * 200 * SECOND // 3
    for lane in (1, 2, 3):
        assert abs(world.received_us[lane] - fair_us) <= 4 * (run_us + SECOND + PREPAID_US)


def test_a_lane_that_wanted_little_banks_nothing_either() -> None:
    """Two slots were all it asked for, always at work: that it could have had five is past."""
    world = LaneWorld(10, {1: Load(SECOND), 2: Load(10 * SECOND, waiting=0)})
    for second in range(5, 600, 5):
        world.loads[2] = Load(10 * SECOND, waiting=1)
        world.run(second * SECOND + SECOND // 10)
        world.loads[2] = Load(10 * SECOND, waiting=0)
        world.run((second + 5) * SECOND)
    assert world.share(2) == pytest.approx(0.2, abs=0.03)
    world.forget_the_past()
    world.loads[2] = Load(SECOND)
    world.run(world.now_us + 60 * SECOND)
    assert world.share(2) == pytest.approx(0.5, abs=0.07)


def test_a_lane_that_was_held_banks_nothing() -> None:
    world = LaneWorld(4, {1: Load(SECOND), 2: Load(SECOND, type_id=TypeId(2))}).run(10 * SECOND)
    world.backlog.runnable.set_holds(Holds([Hold(type=TypeId(2))]))
    world.run(300 * SECOND)
    world.backlog.runnable.set_holds(Holds())
    queued = [make(10**6 + n, ms=n, lane=2, type=2) for n in range(200)]
    for stream, asked in world.backlog.reads.begin(10):  # as the refiller would
        world.backlog.reads.end(stream, queued[:asked], asked, ())
    world.queued[2] = len(queued)
    world.forget_the_past()
    world.run(340 * SECOND)
    assert world.share(2) == pytest.approx(0.5, abs=0.05)


def test_a_worker_that_cannot_run_a_lanes_types_skips_it() -> None:
    world = LaneWorld(4, {1: Load(SECOND), 2: Load(SECOND, type_id=TypeId(2))})
    world.types = frozenset({TypeId(1)})
    world.run(60 * SECOND)
    assert (world.received_us[1], world.received_us[2]) == (4 * 60 * SECOND, 0)
    world.types = frozenset({TypeId(2)})
    world.run(65 * SECOND)
    assert world.received_us[2] > 0


def test_priority_decides_inside_a_lane_only() -> None:
    backlog = TimedBacklog(WindowLimits())
    urgent = [make(n, ms=n, lane=1, priority=9) for n in range(4)]
    normal = [make(n, ms=n, lane=1) for n in range(10, 14)]
    other = [make(n, ms=n, lane=2, priority=0) for n in range(20, 28)]
    backlog.arrived([*normal, *other, *urgent])
    taken = []
    while job := backlog.take(POOL, 1, {TypeId(1)}, ()):
        taken.append(job)
    assert [job for job in taken if job.lane == 1] == [*urgent, *normal]
    assert {job.lane for job in taken[:2]} == {1, 2}  # in turn, though one is urgent


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=50, max_size=300))
@few
def test_memory_stays_bounded(deeds: list[tuple[int, int]]) -> None:
    """Ends add entries that never come up; they are swept out."""
    share, running, now_us = LaneShare(), list[tuple[int, str]](), 0
    streams = [
        Stream(StreamKey(TenantId(1), POOL, TypeId(1), 5, lane), ShardId(0)) for lane in range(6)
    ]
    for number, stream in enumerate(streams):
        share.add(stream)
        stream.window.extend(make(n, lane=number) for n in range(3))
        share.wake(stream, now_us)
    for lane, deed in deeds * 10:
        now_us += 1000
        if deed == 0:
            share.next_stream(Firsts({TypeId(1)}), now_us)
        elif deed == 1:
            running.append((lane, f"{lane}-{now_us}"))
            share.started(*running[-1], now_us)
        elif running:
            share.ended(*running.pop(), now_us)
        assert len(share._waiting) <= 4 * len(share.lanes) + OLD_ENTRIES
    while running:
        share.ended(*running.pop(), now_us)
    assert share.is_quiet
    for stream in streams:
        share.drop(stream)
    assert all(lane.spent_us > share._floor_us for lane in share.lanes.values()), "who had more"


def test_a_tenant_without_keys_has_no_lanes() -> None:
    backlog = TimedBacklog(WindowLimits())
    backlog.arrived([make(1)])
    assert not backlog.has_lanes
    backlog.arrived([make(2, ms=2, lane=3)])
    assert backlog.has_lanes
    assert {backlog.take(POOL, 1, {1}, ()), backlog.take(POOL, 1, {1}, ())} == {
        make(1),
        make(2, ms=2, lane=3),
    }
