"""What is kept of a log's end: the next events as the log has them, or nothing at all."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.events.event import Event
from fairway.core.events.recent import RecentEvents

AT = datetime(2026, 1, 31, tzinfo=UTC)
KEPT = 8

pages = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=12)


def log(first: int, last: int) -> list[Event]:
    return [Event(n, AT, "job.accepted", None, "t", {}) for n in range(first, last + 1)]


@given(pages, st.integers(0, 60), st.integers(1, 10))
def test_an_answer_is_what_the_log_has_there(
    read: list[tuple[int, int]], after: int, limit: int
) -> None:
    """However the followers read, in whatever order: never a hole, never another's events."""
    recent = RecentEvents(KEPT)
    for begin, count in read:
        recent.add(log(begin + 1, begin + count))
        assert len(recent) <= KEPT
    newest = max((begin + count for begin, count in read), default=0)
    found = recent.after(after, limit)
    if found is not None:
        assert [one.position for one in found] == [
            *range(after + 1, min(after + limit, newest) + 1)
        ]


@given(st.integers(0, 1000), st.lists(st.integers(1, KEPT), min_size=1, max_size=10))
def test_who_keeps_up_is_always_served_from_memory(begin: int, sizes: list[int]) -> None:
    recent, position = RecentEvents(KEPT), begin
    for size in sizes:
        recent.add(log(position + 1, position + size))
        found = recent.after(position, size)
        assert found is not None
        assert [one.position for one in found] == [*range(position + 1, position + size + 1)]
        position += size


def test_who_is_too_far_behind_or_ahead_is_sent_to_the_store() -> None:
    recent = RecentEvents(KEPT)
    assert recent.after(0, 5) is None
    recent.add(log(1, 20))
    assert recent.after(11, 5) is None
    assert recent.after(21, 5) is None
    assert recent.after(20, 5) == []
    recent.add(log(30, 31))  # somebody read further on: what was before would be a hole
    assert recent.after(20, 5) is None
    assert recent.after(29, 5) == log(30, 31)
