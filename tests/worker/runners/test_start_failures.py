"""When starting processes is hopeless: after failing for long, without a gap or a success."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.worker.runners.start_failures import (
    APART_SECONDS,
    HOPELESS_SECONDS,
    PAUSE_FIRST_SECONDS,
    PAUSE_MAX_SECONDS,
    StartFailures,
    pause_seconds,
)

#: Seconds until the next event, and whether that is a success.
EVENTS = st.lists(st.tuples(st.floats(0.0, 2 * APART_SECONDS), st.booleans()), max_size=30)


@given(EVENTS)
def test_hopeless_is_a_row_of_failures_that_is_long_and_without_gaps(
    events: list[tuple[float, bool]],
) -> None:
    starts, now, row = StartFailures(), 1000.0, list[float]()
    for seconds, is_success in events:
        now += seconds
        if is_success:
            starts.succeeded()
            row = []
        else:
            starts.failed(now)
            row = [*row, now] if row and now - row[-1] <= APART_SECONDS else [now]
        is_long = bool(row) and now - row[0] >= HOPELESS_SECONDS
        assert starts.are_hopeless(now) == is_long
    if row:
        assert not starts.are_hopeless(row[-1] + APART_SECONDS + 1), "nobody tried since"


def test_who_never_failed_is_not_hopeless() -> None:
    assert not StartFailures().are_hopeless(1e9)


@given(st.integers(1, 10_000))
def test_pauses_grow_and_are_bounded(failures: int) -> None:
    assert pause_seconds(1) == PAUSE_FIRST_SECONDS
    assert pause_seconds(failures) <= pause_seconds(failures + 1) <= PAUSE_MAX_SECONDS
