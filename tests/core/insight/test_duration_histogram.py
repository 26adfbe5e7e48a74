"""Percentiles of run times: right to within an eighth, and the distant past is forgotten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.insight.duration_histogram import WINDOW, DurationHistogram

times_us = st.lists(st.integers(8, 1 << 40), min_size=1, max_size=200)


def histogram_of(times_us: list[int]) -> DurationHistogram:
    found = DurationHistogram()
    for ran_us in times_us:
        found.add(ran_us)
    return found


@given(times_us, st.integers(1, 1000))
def test_a_percentile_is_right_to_within_an_eighth(times_us: list[int], per_mille: int) -> None:
    place = -(-len(times_us) * per_mille // 1000) - 1
    true_us = sorted(times_us)[place]
    found_us = histogram_of(times_us).percentile_us(per_mille)
    assert abs(found_us - true_us) <= true_us / 8


@given(times_us, st.integers(8, 1 << 40))
def test_how_many_took_longer_errs_by_what_is_within_an_eighth(
    times_us: list[int], bound_us: int
) -> None:
    count = len(times_us)
    surely = sum(ran_us > bound_us * 9 / 8 for ran_us in times_us)
    perhaps = sum(ran_us > bound_us for ran_us in times_us)
    found = histogram_of(times_us).share_over(bound_us)
    assert surely * 1000 // count <= found <= perhaps * 1000 // count


def test_nothing_is_known_of_no_runs() -> None:
    assert DurationHistogram().percentile_us() == 0
    assert DurationHistogram().share_over(1) == 0


def test_the_last_runs_weigh_most_and_memory_stays_the_same() -> None:
    histogram = histogram_of([1_000] * WINDOW)
    assert histogram.runs == WINDOW // 2
    for _ in range(WINDOW):
        histogram.add(1_000_000)
    assert histogram.percentile_us(500) > 900_000
    assert histogram.runs < WINDOW
    assert len(histogram._counts) <= 2
