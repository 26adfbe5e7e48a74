"""Who waits for others: where many come, and do meet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backpressure.arrivals import REST_US, WINDOW_US, Arrivals

STEP_US = WINDOW_US // 10


def fed(per_window: int, per_second_min: float = 100.0) -> tuple[Arrivals, int]:
    """To whom so many came in each of three windows; and the time now."""
    arrivals, now_us = Arrivals(per_second_min), 7 * WINDOW_US
    for _ in range(3):
        for place in range(per_window):
            arrivals.came(1, now_us + place * WINDOW_US // per_window)
        now_us += WINDOW_US
    return arrivals, now_us


@given(st.integers(0, 40))
def test_others_are_likely_where_as_many_come_a_second(per_window: int) -> None:
    arrivals, now_us = fed(per_window)
    assert arrivals.is_likely(now_us) == (per_window >= 10)
    assert not arrivals.is_likely(now_us + 2 * WINDOW_US), "that was long ago"


@given(st.lists(st.integers(2, 50), max_size=30))
def test_who_meets_others_goes_on_to_wait(sizes: list[int]) -> None:
    arrivals, now_us = fed(20)
    for size in sizes:
        arrivals.met(size, now_us)
        assert arrivals.is_likely(now_us)


@given(st.integers(2, 30), st.integers(1, 20))
def test_ends_of_a_chain_wait_in_vain_a_few_times_and_then_rest(size: int, times: int) -> None:
    """None comes before the one before it is written."""
    arrivals, now_us = fed(20)
    for _ in range(times):
        arrivals.met(size, now_us)
    waited = 0
    while arrivals.is_likely(now_us) and waited < 50:
        arrivals.met(1, now_us)
        waited += 1
    assert waited <= 6, "however many met before"
    later_us = now_us + REST_US
    arrivals.came(20, later_us - 1)
    assert not arrivals.is_likely(later_us - 1)
    arrivals.came(20, later_us)
    assert arrivals.is_likely(later_us), "it is tried again"
    arrivals.met(1, later_us)
    arrivals.met(1, later_us)
    assert not arrivals.is_likely(later_us), "and those that wait first learn it at once"


def test_who_is_told_to_rests() -> None:
    arrivals, now_us = fed(20)
    arrivals.rest(now_us)
    assert not arrivals.is_likely(now_us + STEP_US)
