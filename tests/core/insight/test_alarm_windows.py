"""Values over the last minutes: bounded, and right to within the distance of two marks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.insight.alarm_windows import MARKS, RecentGrowth, RecentMean

WINDOW_SECONDS = 300.0
APART_US = round(WINDOW_SECONDS * 1_000_000) // MARKS

steps = st.lists(
    st.tuples(st.integers(0, 40_000_000), st.integers(0, 50)), min_size=1, max_size=200
)


@tried(100)
@given(steps)
def test_growth_is_that_of_the_window(found: list[tuple[int, int]]) -> None:
    window, now_us, total = RecentGrowth(WINDOW_SECONDS), 0, 0
    history: list[tuple[int, int]] = []
    for step_us, more in found:
        now_us, total = now_us + step_us, total + more
        history.append((now_us, total))
        grown = window.grown(total, now_us)
        begin_us = now_us - WINDOW_SECONDS * 1_000_000
        least = total - _at(history, begin_us + APART_US)
        most = total - _at(history, begin_us - APART_US - 40_000_000)
        assert least <= grown <= most


def _at(history: list[tuple[int, int]], moment_us: float) -> int:
    """The count at that moment; before the first look, what it was then."""
    known = [total for at_us, total in history if at_us <= moment_us]
    return known[-1] if known else history[0][1]


def test_a_count_that_begins_again_has_not_shrunk() -> None:
    window = RecentGrowth(WINDOW_SECONDS)
    assert window.grown(7, 0) == 0
    assert window.grown(0, 10_000_000) == 0


def test_the_mean_forgets_and_is_nothing_of_nothing() -> None:
    window = RecentMean(WINDOW_SECONDS)
    assert window.mean(0) is None
    for second in range(0, 300, 5):
        window.note(2.0, second * 1_000_000)
    window.note(62.0, 300_000_000)
    assert window.mean(300_000_000) == (59 * 2.0 + 62.0) / 60
    assert window.mean(550_000_000) == (9 * 2.0 + 62.0) / 10
    assert window.mean(700_000_000) is None
