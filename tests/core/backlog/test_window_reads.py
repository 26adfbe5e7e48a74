"""Reads into the windows: an even part of the room, and who holds most makes room for others."""

from __future__ import annotations

import pytest
from tests.core.backlog.test_backlog import POOL, make
from tests.core.timed_backlog import TimedBacklog

from fairway.core.backlog.backlog import Backlog
from fairway.core.backlog.holds import Hold, Holds
from fairway.core.backlog.reading import Found
from fairway.core.backlog.streams import WindowLimits, key_of
from fairway.core.backlog.window_reads import MAKE_ROOM_US
from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards

HOG, LEFT_OUT = TenantId(1), 2
LIMITS = WindowLimits(jobs_total=100, bytes_total=10_000, jobs_per_stream=100, jobs_per_read=40)


@pytest.fixture
def full() -> TimedBacklog:
    """One tenant fills the memory, and another's job is in the store alone."""
    backlog = TimedBacklog(LIMITS)
    backlog.arrived([make(n, ms=n, tenant=HOG) for n in range(100)])
    late = make(200, ms=200, tenant=LEFT_OUT)
    backlog.noticed(key_of(late), late.id)
    return backlog


def test_who_holds_the_most_makes_room(full: TimedBacklog) -> None:
    assert full.windows.is_full
    ((stream, asked),) = full.reads.begin(1, 0)
    assert stream.key.tenant == LEFT_OUT
    assert asked > 0
    assert full.counts.ready(POOL, HOG) == 0, "all of a window goes: it is read again in turn"
    assert full.counts.depth(HOG, [POOL]) == 100, "and its jobs are in the store"
    wanting = [one.key.tenant for one in full.reading.now_wanting()]
    assert wanting == [HOG]


def test_room_is_made_once_a_second_at_most(full: TimedBacklog) -> None:
    ((stream, _),) = full.reads.begin(1, 0)
    full.reads.end(stream, [], 1, (), 0)
    full.arrived([make(n, ms=n, tenant=3) for n in range(300, 400)], 0)
    late = make(500, ms=500, tenant=4)
    full.noticed(key_of(late), late.id)
    assert full.reads.begin(10, MAKE_ROOM_US - 1) == []
    assert full.reads.begin(10, MAKE_ROOM_US) != []


def test_nobody_left_out_and_nobody_gives_up_anything() -> None:
    backlog = TimedBacklog(LIMITS)
    backlog.arrived([make(n, ms=n, tenant=HOG) for n in range(100)])
    late = make(200, ms=200, tenant=HOG, type=2)
    backlog.noticed(key_of(late), late.id)
    assert backlog.reads.begin(10, 0) == []
    assert backlog.counts.ready(POOL, HOG) == 100


@pytest.mark.parametrize("streams", [1, 3, 10])
def test_reads_share_the_room_there_is(streams: int) -> None:
    backlog = TimedBacklog(LIMITS)
    backlog.arrived([make(n, ms=n, tenant=HOG) for n in range(70)])
    for tenant in range(10, 10 + streams):
        job = make(500 + tenant, ms=500, tenant=tenant)
        backlog.noticed(key_of(job), job.id)
    wishes = backlog.reads.begin(20, 0)
    assert len(wishes) == streams
    assert all(stream.reading for stream, _ in wishes)
    assert sum(asked for _, asked in wishes) <= 30
    budget = backlog.reads.budget_of(wishes)
    assert budget.each_bytes * streams <= LIMITS.bytes_total - backlog.windows.bytes_held


def test_a_read_that_was_cut_for_its_weight_goes_on() -> None:
    backlog = TimedBacklog(LIMITS)
    jobs = [make(n, ms=n, size=3_000) for n in range(5)]
    backlog.noticed(key_of(jobs[0]), jobs[0].id)
    ((stream, asked),) = wishes = backlog.reads.begin(1, 0)
    budget = backlog.reads.budget_of(wishes)
    assert backlog.reads.end_weighed((stream, asked), Found(jobs[:3], is_cut=True), budget, (), 0)
    assert (stream.more, stream.heavy) == (True, True)
    assert backlog.counts.ready(POOL, HOG) == 3


def test_what_was_held_while_it_was_read_comes_not_in() -> None:
    backlog = TimedBacklog(LIMITS)
    job = make(1)
    backlog.noticed(key_of(job), job.id)
    ((stream, asked),) = backlog.reads.begin(1, 0)
    backlog.runnable.set_holds(Holds([Hold(tenant=HOG)]))
    assert not backlog.reads.end(stream, [job], asked, (), 0)
    assert backlog.counts.ready(POOL, HOG) == 0


def test_a_read_that_failed_is_asked_for_again() -> None:
    backlog = TimedBacklog(LIMITS)
    job = make(1)
    backlog.noticed(key_of(job), job.id)
    ((stream, _),) = backlog.reads.begin(1, 0)
    assert not backlog.reads.are_wanted
    backlog.reads.fail(stream)
    assert [one for one, _ in backlog.reads.begin(1, 0)] == [stream]


def test_what_came_too_late_to_where_its_tenant_was_is_not_given_out() -> None:
    """Its stream would be read in the tenant's shard of now, which another server may own."""
    homes, job = TenantShards(1), make(1, ms=1, tenant=HOG)
    backlog = Backlog(LIMITS, lambda pool: False, homes)
    homes.learn(HOG, ShardId(3), (ShardId(0),))
    backlog.noticed(key_of(job), job.id, ShardId(0))
    assert backlog.reads.begin(10, 0) == []
    backlog.noticed(key_of(job), job.id, ShardId(3))
    ((stream, _),) = backlog.reads.begin(10, 0)
    assert stream.shard == 3
