"""Who waits for others: where many come, and do meet."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backpressure.company import REST_US, WINDOW_US, Company

STEP_US = WINDOW_US // 10


def fed(per_window: int, per_second_min: float = 100.0) -> tuple[Company, int]:
    """To whom so many came in each of three windows; and the time now."""
    company, now_us = Company(per_second_min), 7 * WINDOW_US
    for _ in range(3):
        for place in range(per_window):
            company.came(1, now_us + place * WINDOW_US // per_window)
        now_us += WINDOW_US
    return company, now_us


@given(st.integers(0, 40))
def test_company_is_likely_where_as_many_come_a_second(per_window: int) -> None:
    company, now_us = fed(per_window)
    assert company.is_likely(now_us) == (per_window >= 10)
    assert not company.is_likely(now_us + 2 * WINDOW_US), "that was long ago"


@given(st.lists(st.integers(2, 50), max_size=30))
def test_who_meets_others_goes_on_to_wait(sizes: list[int]) -> None:
    company, now_us = fed(20)
    for size in sizes:
        company.met(size, now_us)
        assert company.is_likely(now_us)


@given(st.integers(2, 30), st.integers(1, 20))
def test_ends_of_a_chain_wait_in_vain_a_few_times_and_then_rest(size: int, times: int) -> None:
    """None comes before the one before it is written."""
    company, now_us = fed(20)
    for _ in range(times):
        company.met(size, now_us)
    waited = 0
    while company.is_likely(now_us):
        company.met(1, now_us)
        waited += 1
    assert waited <= 6, "however many met before"
    later_us = now_us + REST_US
    company.came(20, later_us - 1)
    assert not company.is_likely(later_us - 1)
    company.came(20, later_us)
    assert company.is_likely(later_us), "it is tried again"
    company.met(1, later_us)
    company.met(1, later_us)
    assert not company.is_likely(later_us), "and those that wait first learn it at once"


def test_who_is_told_to_rests() -> None:
    company, now_us = fed(20)
    company.rest(now_us)
    assert not company.is_likely(now_us + STEP_US)
