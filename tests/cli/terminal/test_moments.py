"""Times as people write them at a prompt, and read them in a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fairway.cli.terminal.moments import age, future, past, span
from fairway.core.errors import InvalidRequest

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_how_long_ago() -> None:
    assert past("1h30m", "since", NOW) == "2026-01-31T10:30:00+00:00"
    assert future("10m", "at", NOW) == "2026-01-31T12:10:00+00:00"
    assert past(None, "since", NOW) is None


def test_a_moment_without_a_zone_is_the_readers() -> None:
    said = past("2026-01-30T08:00", "since", NOW)
    assert said is not None
    assert datetime.fromisoformat(said) == datetime(2026, 1, 30, 8).astimezone()
    assert past("2026-01-30T08:00Z", "since", NOW) == past("2026-01-30T08:00+00:00", "since", NOW)


def test_days_begin_at_midnight() -> None:
    said = past("yesterday", "since", NOW)
    assert said is not None
    begun = datetime.fromisoformat(said)
    assert (begun.hour, begun.minute) == (0, 0)
    assert timedelta(0) < NOW - begun < timedelta(days=2)


@pytest.mark.parametrize("text", ["soon", "", "-1h", "1 fortnight", "9" * 400 + "d", "0000"])
def test_what_is_no_time_is_said_with_an_example(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"--since .*2h or 1d"):
        past(text, "since", NOW)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "40 ms"),
        (1.26, "1.3 s"),
        (59, "59 s"),
        (1205.4, "20 min"),
        (150, "2 min"),
        (7300, "2 h"),
        (200_000, "2 d"),
    ],
)
def test_a_span_has_one_unit(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_what_is_to_come_is_told_apart() -> None:
    assert age("2026-01-31T11:00:00Z", NOW) == "60 min"
    assert age("2026-01-31T12:10:00Z", NOW) == "in 10 min"
    assert age(None, NOW) == "–"
