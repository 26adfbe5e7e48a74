"""Which stream goes next: what is kept at hand says the same as a look at all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.backlog.test_backlog import POOL, make

from fairway.core.backlog.firsts import Firsts
from fairway.core.backlog.priority import AGEING_MS, FEW_STREAMS, StreamGroup, first_of
from fairway.core.backlog.streams import Stream, StreamKey
from fairway.core.ids import ShardId, TenantId, TypeId

TYPES = st.frozensets(st.integers(1, 5))
#: Of each stream: its type, its priority, and when its jobs were accepted.
streams = st.lists(
    st.tuples(
        st.integers(1, 5), st.integers(0, 9), st.lists(st.integers(0, 10 * AGEING_MS), max_size=3)
    ),
    max_size=2 * FEW_STREAMS,
)


def group_of(plan: list[tuple[int, int, list[int]]]) -> tuple[StreamGroup, list[Stream]]:
    group, made = StreamGroup(), list[Stream]()
    for lane, (type_id, priority, times) in enumerate(plan):
        stream = Stream(StreamKey(TenantId(1), POOL, TypeId(type_id), priority, lane), ShardId(0))
        for number, ms in enumerate(sorted(times)):
            stream.window.append(make(lane * 10 + number, ms=ms, type=type_id, priority=priority))
        group.add(stream)
        made.append(stream)
    return group, made


@given(streams, TYPES)
def test_a_grant_of_many_takes_what_one_by_one_would(
    plan: list[tuple[int, int, list[int]]], types: frozenset[TypeId]
) -> None:
    group, made = group_of(plan)
    firsts = Firsts(types)
    while (chosen := firsts.of(group)) is not None:
        expected = first_of(made, types)
        assert expected is not None
        ranks = [
            (make_rank(one), one is chosen) for one in made if one.window and one.type in types
        ]
        assert min(rank for rank, _ in ranks) == next(rank for rank, is_it in ranks if is_it)
        assert make_rank(expected) == make_rank(chosen)
        chosen.window.popleft()
    assert first_of(made, types) is None


def make_rank(stream: Stream) -> int:
    """When its head would be accepted, were it of priority 0."""
    return int(stream.window[0].id[:13].replace("-", ""), 16) - stream.key.priority * AGEING_MS


@given(streams, TYPES)
def test_streams_by_type_are_all_of_them(
    plan: list[tuple[int, int, list[int]]], types: frozenset[TypeId]
) -> None:
    group, made = group_of(plan)
    while made:
        assert len(group) == len(made)
        assert sorted(map(id, group)) == sorted(map(id, made))
        found = {id(stream) for stream in group.of_types(types)}
        assert found >= {id(stream) for stream in made if stream.type in types}
        assert all(
            group.has(TypeId(type_)) == any(one.type == type_ for one in made) for type_ in types
        )
        group.drop(made.pop(len(made) // 2))
    assert len(group) == 0


@pytest.mark.parametrize(("younger_ms", "goes_first"), [(AGEING_MS - 1, True), (AGEING_MS, False)])
def test_a_step_of_priority_is_worth_so_much_waiting(younger_ms: int, goes_first: bool) -> None:
    _, (low, high) = group_of([(1, 4, [0]), (1, 5, [younger_ms])])
    assert (first_of([low, high], {TypeId(1)}) is high) == goes_first
