"""Who keeps killing workers is throttled; who was there by chance is not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.failure.crash_throttle import (
    WHOLE,
    CrashThrottle,
    CrashThrottleSettings,
    blame_of,
)

SETTINGS = CrashThrottleSettings(window_us=600, deaths_max=30, rest_us=10)


def test_the_cap_is_passed_once_and_lifted_when_half_has_left() -> None:
    throttle = CrashThrottle(SETTINGS)
    told = [throttle.died(now_us, WHOLE) for now_us in range(40)]
    assert told == [False] * 29 + [True] + [False] * 10
    assert throttle.is_throttled
    assert not throttle.is_over(40)
    assert not throttle.is_idle(40)
    assert throttle.is_over(40 + 2 * SETTINGS.window_us)
    throttle.lift()
    assert throttle.is_idle(40 + 2 * SETTINGS.window_us)


def test_throttled_one_goes_out_after_each_rest() -> None:
    throttle = CrashThrottle(SETTINGS)
    assert not throttle.tick(0), "nothing goes out of what is not held"
    throttle.died(0, WHOLE * SETTINGS.deaths_max)
    assert [now_us for now_us in range(1, 45) if throttle.tick(now_us)] == [10, 20, 30, 40]


@given(st.integers(2, 20), st.integers(1, 29))
def test_who_was_there_by_chance_passes_no_cap(tenants: int, deaths: int) -> None:
    """Each death takes as many tenants; one of them is there every time, the others change."""
    throttles = {tenant: CrashThrottle(SETTINGS) for tenant in range(tenants * deaths)}
    share = blame_of(tenants)
    assert share * tenants <= WHOLE
    for death in range(deaths):
        for tenant in {0, *range(death * tenants, (death + 1) * tenants - 1)}:
            throttles[tenant].died(death, share)
    assert not any(one.is_throttled for one in throttles.values())


def test_whoever_is_there_each_time_passes_it() -> None:
    throttle = CrashThrottle(SETTINGS)
    deaths = [throttle.died(0, blame_of(4)) for _ in range(4 * SETTINGS.deaths_max)]
    assert deaths.index(True) == 4 * SETTINGS.deaths_max - 1
