"""An hour is the sum of its minutes, and a graph does not show how many servers there were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.insight.history import COLUMNS, Stored, axis, columns, minute_bit, rolled_up

HOUR = 1_000_000 * 3600

counts = st.integers(0, 1000)
levels = st.none() | st.integers(0, 100)
buckets = st.lists(st.integers(0, 9), max_size=8)


@st.composite
def minute_lines(draw: st.DrawFn) -> list[Stored]:
    """Of one server and one hour, some minutes of it."""
    minutes = draw(st.lists(st.integers(0, 59), min_size=1, max_size=5, unique=True))
    return [
        Stored._make(
            (
                HOUR + 60 * minute,
                minute_bit(HOUR + 60 * minute),
                *[draw(counts) for _ in range(6)],
                *[draw(levels) for _ in range(4)],
                draw(buckets),
                draw(buckets),
            )
        )
        for minute in minutes
    ]


@given(minute_lines(), minute_lines())
@tried(50)
def test_the_sum_of_parts_is_the_sum_of_all(some: list[Stored], more: list[Stored]) -> None:
    whole, parts = rolled_up([*some, *more]), rolled_up([rolled_up(some), rolled_up(more)])
    assert whole._replace(pickup=[], run=[]) == parts._replace(pickup=[], run=[])
    assert list(whole.pickup) == list(parts.pickup)
    assert whole.at == HOUR
    at = axis(HOUR, HOUR + 1, "hour")
    assert columns([whole], at) == columns([rolled_up(some), rolled_up(more)], at)


@given(minute_lines(), st.integers(0, 60))
@tried(50)
def test_two_servers_one_after_the_other_look_like_one(lines: list[Stored], cut: int) -> None:
    first, then = lines[:cut], lines[cut:]
    parts = [rolled_up(part) for part in (first, then) if part]
    at = axis(HOUR, HOUR + 1, "hour")
    assert columns(parts, at) == columns([rolled_up(lines)], at)


def test_two_servers_at_the_same_time_are_added() -> None:
    line = Stored(HOUR, 1, 1, 1, 1, 0, 0, 0, 10, 2, 4, 500, [0, 1], [])
    found = columns([line, line._replace(oldest_ms=None)], axis(HOUR, HOUR + 60, "minute"))
    assert found["accepted"] == [2]
    assert found["queued"] == [20]
    assert found["oldest_age_seconds"] == [0.5]
    assert found["run_p50"] == [None]


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.sampled_from(["minute", "hour"]))
def test_steps_begin_within_the_time_that_was_asked_for(since: int, span: int, step: str) -> None:
    at = axis(since, since + span, step)  # type: ignore[arg-type]
    assert all(since <= moment < since + span for moment in (*at[:1], *at[-1:]))
    found = columns([], at)
    assert found.keys() == set(COLUMNS)
    assert all(values == [None] * len(at) for values in found.values())
