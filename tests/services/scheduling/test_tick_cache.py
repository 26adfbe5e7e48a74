"""Ticks that were found before: whatever was learnt, the answer is what a search would find."""

from __future__ import annotations

from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from fairway.services.scheduling.tick_cache import TICKS_MAX, KnownTicks

ALL = sorted({n * n % 9973 for n in range(2, 400)})
MOMENTS = st.integers(0, ALL[-1] - 1)


def ticks_after(moment: int) -> list[int]:
    return ALL[bisect_right(ALL, moment) :]


@given(st.lists(st.tuples(MOMENTS, st.integers(0, 150)), min_size=1), st.lists(MOMENTS, min_size=1))
def test_what_is_known_is_what_a_search_would_find(
    learnt: list[tuple[int, int]], asked: list[int]
) -> None:
    known = KnownTicks()
    for moment, count in learnt:
        known.learn("* * * * *", "UTC", moment, ticks_after(moment)[:count])
        for other in (*asked, moment):
            found = list(known.after("* * * * *", "UTC", other))
            assert found == ticks_after(other)[: len(found)]
            assert len(found) <= TICKS_MAX


@given(MOMENTS, st.integers(1, 150))
def test_what_was_learnt_last_is_known(moment: int, count: int) -> None:
    known = KnownTicks()
    known.learn("* * * * *", "UTC", moment, ticks_after(moment)[:count])
    found = known.after("* * * * *", "UTC", moment)
    assert list(found) == ticks_after(moment)[: min(count, TICKS_MAX)]
    assert known.after("* * * * *", "Europe/Lisbon", moment) == ()


def test_a_shorter_search_does_not_take_the_longer_one_away() -> None:
    known = KnownTicks()
    known.learn("a", "UTC", 100, ticks_after(100)[:20])
    known.learn("a", "UTC", 101, ticks_after(101)[:1])
    assert len(known.after("a", "UTC", 100)) == 20


def test_the_oldest_expression_makes_room() -> None:
    known = KnownTicks(entries_max=3)
    for name in "abcd":
        known.learn(name, "UTC", 0, [1, 2])
    assert known.after("a", "UTC", 0) == ()
    assert all(known.after(name, "UTC", 0) == (1, 2) for name in "bcd")
