"""Pauses grow, end at the longest, and are spread so that herds break up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway import App, Exponential, Retry
from fairway.sdk.handler.pauses import MIDDLE_SAMPLE
from fairway.testing import perform

SAMPLES = st.floats(0, 1, exclude_max=True)


def pauses_ms(backoff: Any, count: int, sample: float = MIDDLE_SAMPLE, **more: Any) -> list[int]:
    pauses = Retry(backoff=backoff, **more).pauses
    return [pauses.pause_ms(attempt, sample) for attempt in range(1, count + 1)]


def test_each_is_so_many_times_the_one_before() -> None:
    assert pauses_ms(Exponential("1s", factor=3, most="10s"), 4) == [1000, 3000, 9000, 10_000]


def test_the_last_of_a_list_repeats() -> None:
    assert pauses_ms(("1s", "5s"), 3) == [1000, 5000, 5000]


@given(st.floats(1, 1e6), st.floats(0, 1), SAMPLES, st.integers(1, 32_767))
def test_a_pause_is_within_its_bounds(
    factor: float, jitter: float, sample: float, attempt: int
) -> None:
    backoff = Exponential("2s", factor=factor, most="10m", jitter=jitter)
    middle = backoff.pause_ms(attempt, MIDDLE_SAMPLE)
    assert 2000 <= middle <= 600_000
    assert abs(backoff.pause_ms(attempt, sample) - middle) <= jitter * middle + 1
    assert backoff.pause_ms(attempt + 1, MIDDLE_SAMPLE) >= middle


@given(SAMPLES)
def test_a_list_is_spread_too_unless_told_otherwise(sample: float) -> None:
    [spread] = pauses_ms(("10s",), 1, sample)
    assert spread == round(10_000 * (0.8 + 0.4 * sample))
    assert pauses_ms(("10s",), 1, sample, jitter=0) == [10_000]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Exponential("0s"), "longer than nothing"),
        (lambda: Exponential("1s", factor=0.5), "factor must be at least 1"),
        (lambda: Exponential("1h", most="1s"), "most='1s' is shorter than the first"),
        (lambda: Exponential("1s", jitter=2), "jitter must be 0 to 1"),
        (lambda: Retry(backoff=("1s",), jitter=-1), "jitter must be 0 to 1"),
        (lambda: Retry(backoff=Exponential("1s"), jitter=0.1), "give the jitter to Exponential"),
        (lambda: Retry(backoff="10s"), r"write it as \('10s',\)"),
    ],
)
def test_what_makes_no_sense_is_told_at_once(wrong: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        wrong()


def test_under_test_there_is_no_chance() -> None:
    app = App("pauses")

    @app.job(retry=Retry(9, backoff=Exponential("1s")))
    def fails() -> None:
        raise ConnectionError

    assert [perform(fails, attempt=n).delay_seconds for n in (1, 2, 3)] == [1, 2, 4]
