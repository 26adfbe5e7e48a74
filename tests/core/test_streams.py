"""Which stream goes next, asked for many jobs in a row."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
from tests.core.test_backlog import POOL, make

from fairway.core.backlog import Backlog, WindowLimits
from fairway.core.streams import FEW_STREAMS, Firsts, Stream, StreamKey, first_of

HEADS = st.lists(st.lists(st.integers(0, 600_000), max_size=4), min_size=1, max_size=30)


@given(HEADS, st.sets(st.integers(1, 3)))
def test_in_a_row_the_same_go_first_as_one_by_one(heads: list[list[int]], types: set[int]) -> None:
    streams = []
    for number, times in enumerate(heads):
        stream = Stream(StreamKey(1, POOL, 1 + number % 3, number % 10), 0)
        stream.window.extend(make(number, ms=ms) for ms in sorted(times))
        streams.append(stream)
    firsts = Firsts(types)
    while (found := first_of(streams, types)) is not None:
        assert firsts.of(streams[0], streams) is found
        found.window.popleft()
    assert firsts.of(streams[0], streams) is None


def test_taking_many_of_very_many_streams_looks_at_each_a_few_times() -> None:
    backlog = Backlog(WindowLimits(), lambda: 0)
    count = 10_000
    backlog.arrived(make(number, type=1 + number, ms=number) for number in range(count))
    take = backlog.taker(POOL, range(1, count + 1), (), lambda tenant: None)
    began = time.thread_time()
    taken = [take(1) for _ in range(512)]
    assert time.thread_time() - began < 0.1
    assert [job.type for job in taken if job] == list(range(1, 513))
    assert count > FEW_STREAMS
