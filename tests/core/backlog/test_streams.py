"""Which stream goes next, asked for many jobs in a row."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import POOL, make
from tests.core.timed_backlog import TimedBacklog

from fairway.core.backlog.firsts import Firsts
from fairway.core.backlog.priority import FEW_STREAMS, StreamGroup, first_of
from fairway.core.backlog.streams import Stream, StreamKey, WindowLimits
from fairway.core.ids import ShardId, TenantId, TypeId

HEADS = st.lists(st.lists(st.integers(0, 600_000), max_size=4), min_size=1, max_size=30)


@given(HEADS, st.sets(st.integers(1, 3).map(TypeId)))
def test_in_a_row_the_same_go_first_as_one_by_one(
    heads: list[list[int]], types: set[TypeId]
) -> None:
    group = StreamGroup()
    for number, times in enumerate(heads):
        stream = Stream(
            StreamKey(TenantId(1), POOL, TypeId(1 + number % 3), number % 10), ShardId(0)
        )
        stream.window.extend(make(number, ms=ms) for ms in sorted(times))
        group.add(stream)
    firsts = Firsts(types)
    while (found := first_of(group.of_types(types), types)) is not None:
        assert firsts.of(group) is found
        found.window.popleft()
    assert firsts.of(group) is None


def test_taking_many_of_very_many_streams_looks_at_each_a_few_times() -> None:
    backlog = TimedBacklog(WindowLimits(), lambda: 0)
    count = 10_000
    backlog.arrived(make(number, type=1 + number, ms=number) for number in range(count))
    take = backlog.taker(POOL, set(map(TypeId, range(1, count + 1))), (), lambda tenant: None, 0)
    began = time.thread_time()
    taken = [take(TenantId(1)) for _ in range(512)]
    assert time.thread_time() - began < 0.1
    assert [job.type for job in taken if job] == list(range(1, 513))
    assert count > FEW_STREAMS


def test_what_no_worker_runs_costs_the_others_nothing() -> None:
    """A tenant may name thousands of types that nobody has; each of its streams has jobs."""
    backlog, count = TimedBacklog(WindowLimits(), lambda: 0), 9_000
    backlog.arrived(make(number, type=10 + number, ms=number) for number in range(count))
    backlog.arrived(make(number, type=1, ms=number) for number in range(count, count + 500))
    began = time.thread_time()
    taken = [
        backlog.take(POOL, 1, frozenset({TypeId(1), TypeId(2), TypeId(3)}), ()) for _ in range(500)
    ]
    assert time.thread_time() - began < 0.1
    assert all(job and job.type == 1 for job in taken)


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 9)), unique=True), st.data())
def test_a_group_holds_what_came_and_did_not_go(
    keys: list[tuple[int, int]], data: st.DataObject
) -> None:
    streams = [
        Stream(StreamKey(TenantId(1), POOL, TypeId(type_), priority), ShardId(0))
        for type_, priority in keys
    ]
    group = StreamGroup()
    for stream in streams:
        group.add(stream)
    gone = data.draw(st.sets(st.sampled_from(range(len(streams)))) if streams else st.just(set()))
    for number in gone:
        group.drop(streams[number])
    left = {stream.key for number, stream in enumerate(streams) if number not in gone}
    assert {stream.key for stream in group} == left
    assert len(group) == len(left)
    types = data.draw(st.sets(st.integers(1, 20).map(TypeId)))
    found = {stream.key for stream in group.of_types(types) if stream.type in types}
    assert found == {key for key in left if key.type in types}
