"""The retry budget: whatever fails, retries stay within twice the first dispatches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.failure.crash_throttle import (
    WHOLE,
    CrashThrottle,
    CrashThrottleSettings,
    blame_of,
)
from fairway.core.failure.retry_budget import BudgetSettings, RetryBudget

SETTINGS = BudgetSettings()
MINUTE_US = 60_000_000


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), max_size=80))
def test_retries_never_pass_their_part_of_the_window(steps: list[tuple[int, int]]) -> None:
    budget, now_us = RetryBudget(SETTINGS), 0
    for dispatched, wished in steps:
        now_us += MINUTE_US // 4
        budget.dispatched(now_us, dispatched)
        for _ in range(wished):
            budget.take(now_us)
        # What left the window takes its dispatches and its retries along, each a bucket at a time.
        most = max(2 * budget.dispatches, SETTINGS.retries_free)
        assert budget.retries <= most or not budget.take(now_us)


def test_a_tenant_whose_every_job_fails() -> None:
    """Jobs come, each fails at every try: granted are two retries a job, and the few free ones."""
    budget, retries = RetryBudget(SETTINGS), 0
    for second in range(300):
        budget.dispatched(second * 1_000_000, 10)
        retries += sum(budget.take(second * 1_000_000) for _ in range(40))
    assert 2 * 3000 - 40 <= retries <= 2 * 3000


def test_a_few_are_always_allowed_and_the_window_moves_on() -> None:
    budget = RetryBudget(SETTINGS)
    assert [budget.take(0) for _ in range(21)] == [True] * 20 + [False]
    assert not budget.is_idle(0)
    assert budget.take(SETTINGS.window_us * 2)
    assert budget.is_idle(SETTINGS.window_us * 4)


# -- workers that die ----------------------------------------------------------------------------


def test_whoever_is_there_each_time_is_throttled_and_whoever_was_there_by_chance_is_not() -> None:
    settings = CrashThrottleSettings()
    guilty, unlucky = CrashThrottle(settings), CrashThrottle(settings)
    now_us, answers = 0, []
    for death in range(60):
        now_us += 1_000_000
        with_whom = 1 + (death % 3 == 0)
        answers.append(guilty.died(now_us, blame_of(with_whom)))
        if with_whom == 2:
            assert not unlucky.died(now_us, blame_of(2))
    assert answers.count(True) == 1
    assert (guilty.is_throttled, unlucky.is_throttled) == (True, False)


def test_a_throttle_lets_one_job_out_at_a_time_and_ends() -> None:
    settings = CrashThrottleSettings()
    one = CrashThrottle(settings)
    for _ in range(settings.deaths_max):
        one.died(0, WHOLE)
    assert not one.tick(settings.rest_us - 1)
    assert one.tick(settings.rest_us)
    assert not one.tick(settings.rest_us + 1)
    assert not one.is_over(settings.rest_us)
    assert one.is_over(settings.window_us * 2)
    one.lift()
    assert one.is_idle(settings.window_us * 2)
