"""Due times, last moments, and the spread of herds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.scheduling.timing import (
    HERD_AFTER_MS,
    HERD_SPREAD_MS,
    OnLate,
    Timing,
    is_too_late,
    lateness_ms,
    may_start,
    spread_ms,
)

moments = st.integers(0, 10**13)
samples = st.floats(0, 1, exclude_max=True)


@given(moments, moments, samples)
def test_only_what_is_far_away_is_spread_and_never_by_more_than_a_minute(
    due: int, now: int, sample: float
) -> None:
    spread = spread_ms(due, now, sample)
    assert abs(spread - due) <= HERD_SPREAD_MS
    if due - now <= HERD_AFTER_MS:
        assert spread == due
    else:
        assert spread > now, "a spread job is never due at once"


def test_the_spread_uses_the_whole_width() -> None:
    due = 10 * HERD_AFTER_MS
    assert spread_ms(due, 0, 0.0) == due - HERD_SPREAD_MS
    assert spread_ms(due, 0, 0.5) == due
    assert spread_ms(due, 0, 0.999_999_9) == due + HERD_SPREAD_MS


@given(moments, moments, st.none() | moments, st.sampled_from(OnLate))
def test_a_job_may_start_unless_it_is_late_and_to_be_skipped(
    due: int, now: int, last: int | None, rule: OnLate
) -> None:
    timing = Timing(due, last, rule)
    late = last is not None and now > last
    assert is_too_late(timing, now) == late
    assert may_start(timing, now) == (not late or rule is not OnLate.SKIP)
    assert lateness_ms(timing, now) == max(0, now - due)


def test_a_row_without_a_last_moment_is_no_rule() -> None:
    assert Timing.of([5, None, None]) == Timing(5)
    assert Timing.of([5, 9, 1]) == Timing(5, 9, OnLate.SKIP)
