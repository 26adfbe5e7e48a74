"""Depth, rates and quantiles from the lives of jobs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.lab.measure.timeline import Life, rate_of, timeline

spans = st.tuples(*(st.floats(0, 5) for _ in range(4)))


@given(st.lists(spans, max_size=40))
def test_what_is_offered_is_completed_and_the_queue_ends_empty(
    gaps: list[tuple[float, float, float, float]],
) -> None:
    lives = [Life(a, a + b, a + b + c, a + b + c + d) for a, b, c, d in gaps]
    moments = timeline(lives, 0, 21, 1)
    assert sum(m.offered for m in moments) == len(lives)
    assert sum(m.completed for m in moments) == len(lives)
    assert moments[-1].depth == 0
    assert all(m.depth >= 0 for m in moments)


def test_depth_counts_who_is_accepted_and_not_started() -> None:
    lives = [Life(0, 0.1, 0.1, 2), Life(0, 0.1, 2.5, 4), Life(0, 0.1, 3.5, 5)]
    assert [m.depth for m in timeline(lives, 0, 5, 1)] == [2, 2, 1, 0, 0]
    assert [m.completed for m in timeline(lives, 0, 5, 1)] == [0, 0, 1, 0, 1]


def test_a_rate_counts_its_left_edge_and_not_its_right() -> None:
    assert rate_of([1, 2, 2.5, 3], 1, 3) == 1.5
