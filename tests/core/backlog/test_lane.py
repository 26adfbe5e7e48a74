"""One lane: what it has cost so far, and whether it only waits for the store."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import POOL

from fairway.core.backlog.lane import LOOK_US, MANY_STREAMS, PREPAID_US, Lane
from fairway.core.backlog.streams import Stream, StreamKey
from fairway.core.ids import ShardId, TenantId, TypeId


def lane_with(streams: int) -> tuple[Lane, list[Stream]]:
    lane = Lane()
    made = [
        Stream(StreamKey(TenantId(1), POOL, TypeId(n), 5, 7), ShardId(0)) for n in range(streams)
    ]
    for stream in made:
        lane.streams.add(stream)
    return lane, made


@given(st.lists(st.integers(0, 1000), max_size=5), st.integers(0, 1000), st.integers(1000, 9999))
def test_a_running_job_costs_what_it_ran_and_something_ahead(
    granted_us: list[int], spent_us: int, now_us: int
) -> None:
    lane = Lane()
    lane.spent_us = spent_us
    for number, moment_us in enumerate(granted_us):
        lane.running[str(number)] = moment_us
        lane.granted_sum_us += moment_us
    ahead_us = sum(now_us - moment_us + PREPAID_US for moment_us in granted_us)
    assert lane.cost_us(now_us) == spent_us + ahead_us


def test_a_lane_that_only_waits_for_the_store_is_not_idle() -> None:
    lane, (one, other) = lane_with(2)
    lane.rest(0)
    assert lane.is_idle
    other.more = True
    lane.rest(1)
    assert not lane.is_idle
    other.more, other.reading = False, True
    lane.rest(2)
    assert not lane.is_idle
    other.blocked = True
    one.more = one.blocked = True
    lane.rest(3)
    assert lane.is_idle, "nothing of what is held goes on"


def test_very_many_streams_are_not_asked_with_every_grant() -> None:
    lane, streams = lane_with(MANY_STREAMS + 1)
    lane.rest(0)
    assert lane.is_idle
    streams[-1].more = True
    lane.rest(LOOK_US - 1)
    assert lane.is_idle, "as it was a moment ago"
    lane.rest(LOOK_US)
    assert not lane.is_idle
