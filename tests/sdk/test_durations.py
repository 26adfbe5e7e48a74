"""Durations as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.sdk.durations import Duration, milliseconds_of, seconds_of


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("2m", 120),
        ("500ms", 0.5),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("1d", 86400),
        ("30S", 30),
        (0, 0),
        (2.5, 2.5),
        (timedelta(minutes=1), 60),
    ],
)
def test_seconds(written: Duration, seconds: float) -> None:
    assert seconds_of(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "written",
    ["", "m", "5", "five minutes", "2m!", "-1s", -1, float("nan"), float("inf"), True, None,
     timedelta(seconds=-1), 10**400, f"{'9' * 400}d"],
)  # fmt: skip
def test_what_is_no_duration_is_refused(written: Duration) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        seconds_of(written)


@given(st.integers(0, 10**9))
def test_milliseconds_survive_the_writing(amount_ms: int) -> None:
    assert milliseconds_of(f"{amount_ms}ms") == amount_ms


def test_a_length_beyond_the_bound_counts_as_the_bound() -> None:
    assert milliseconds_of(1e10, at_most_ms=5000) == 5000
    assert milliseconds_of(timedelta.max, at_most_ms=5000) == 5000
    assert milliseconds_of(4, at_most_ms=5000) == 4000
