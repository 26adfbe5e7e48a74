"""Counts over a sliding window, held against a list that forgets nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.failure.sliding_window import BUCKETS, SlidingCount

WINDOW_US = 300
BUCKET_US = WINDOW_US // BUCKETS

steps = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 5), st.integers(0, 5)), max_size=60)


@given(steps)
def test_it_counts_the_window_to_within_one_bucket(steps: list[tuple[int, int, int]]) -> None:
    counts, now_us, seen = SlidingCount(WINDOW_US), 0, []
    for rest_us, good, bad in steps:
        now_us += rest_us
        counts.add(now_us, good=good, bad=bad)
        seen.append((now_us, good, bad))
        surely = [s for s in seen if s[0] > now_us - WINDOW_US + BUCKET_US]
        perhaps = [s for s in seen if s[0] > now_us - WINDOW_US - BUCKET_US]
        assert sum(s[1] for s in surely) <= counts.good <= sum(s[1] for s in perhaps)
        assert sum(s[2] for s in surely) <= counts.bad <= sum(s[2] for s in perhaps)


def test_it_forgets_and_can_be_cleared() -> None:
    counts = SlidingCount(WINDOW_US)
    counts.add(0, good=3, bad=4)
    assert counts.total == 7
    counts.slide(WINDOW_US + BUCKET_US)
    assert counts.total == 0
    counts.add(WINDOW_US * 2, bad=1)
    counts.clear()
    assert (counts.good, counts.bad) == (0, 0)
