"""When to ask again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.sdk.http.backoff import CAP_SECONDS, parse_retry_after, pause_seconds


@given(st.integers(1, 10_000), st.floats(0, 0.999))
def test_pauses_are_bounded(tries: int, sample: float) -> None:
    assert 0 <= pause_seconds(tries, None, sample) <= CAP_SECONDS
    assert 2 <= pause_seconds(tries, 2, sample) <= 2 + CAP_SECONDS


def test_pauses_grow() -> None:
    assert pause_seconds(1, None, 0.5) < pause_seconds(3, None, 0.5) < pause_seconds(5, None, 0.5)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("3", 3.0),
        ("-1", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e999", None),
        ("Thu, 01 Jan 2026 00:00:10 GMT", 10.0),
        ("Thu, 01 Jan 2015 00:00:10 GMT", 0.0),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, unix_seconds=1_767_225_600) == seconds
