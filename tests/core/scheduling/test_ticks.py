"""Which ticks fire: each catch-up policy gives exactly its runs, each overlap policy its order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.scheduling.ticks import (
    CATCH_UP_MAX,
    ON_TIME_MS,
    CatchUp,
    Every,
    Overlap,
    Plan,
    due_ticks,
    plan,
    spread_of,
)

MINUTE = 60_000
HOUR = 60 * MINUTE


# -- ten minutes of silence --------------------------------------------------------

BEFORE = 100 * MINUTE  # the last tick that was settled
AFTER = 110 * MINUTE + 20_000  # servers come back; the tick of 110:00 is 20 s old


@pytest.mark.parametrize(
    ("rule", "window_ms", "runs", "missed"),
    [
        (CatchUp.NONE, HOUR, [], 10),
        (CatchUp.LAST, HOUR, [110], 9),
        (CatchUp.ALL, HOUR, list(range(101, 111)), 0),
        (CatchUp.ALL, 5 * MINUTE, list(range(106, 111)), 5),
    ],
)
def test_ten_minutes_down_with_a_schedule_every_minute(
    rule: CatchUp, window_ms: int, runs: list[int], missed: int
) -> None:
    due = due_ticks(Every(MINUTE, 0).until(AFTER), BEFORE, AFTER, rule, window_ms)
    assert [tick // MINUTE for tick in due.ticks] == runs
    assert due.missed == missed


@pytest.mark.parametrize("rule", CatchUp)
def test_a_year_of_silence_never_gives_thousands(rule: CatchUp) -> None:
    asked = 0

    def ticks() -> Iterator[int]:
        nonlocal asked
        for tick in Every(10_000, 0).until(365 * 24 * HOUR):
            asked += 1
            yield tick

    due = due_ticks(ticks(), 0, 365 * 24 * HOUR, rule, 400 * 24 * HOUR)
    assert len(due.ticks) <= CATCH_UP_MAX
    assert asked <= 1200, "nor is it worked through"


@given(
    st.lists(st.integers(0, 10**7), unique=True, max_size=200),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.sampled_from(CatchUp),
    st.integers(0, 10**7),
)
def test_what_fires_is_new_in_order_and_allowed(
    ticks: list[int], handled: int, now: int, rule: CatchUp, window: int
) -> None:
    past = sorted((tick for tick in ticks if tick <= now), reverse=True)
    due = due_ticks(past, handled, now, rule, window)
    assert list(due.ticks) == sorted(due.ticks)
    fresh = [tick for tick in past if tick > handled]
    assert set(due.ticks) <= set(fresh)
    on_time = {tick for tick in fresh if now - tick <= ON_TIME_MS}
    assert on_time <= set(due.ticks), "what is on time always fires"
    late = set(due.ticks) - on_time
    if rule is CatchUp.NONE:
        assert not late
    if rule is CatchUp.LAST:
        assert late == (set() if on_time else set(fresh[:1]))
    if rule is CatchUp.ALL:
        assert all(now - tick <= window for tick in late)
    assert len(due.ticks) + due.missed == len(fresh)


# -- overlap --------------------------------------------------------


@pytest.mark.parametrize(
    ("overlap", "ticks", "is_live", "waiting", "wanted"),
    [
        (Overlap.ALLOW, [1, 2], True, None, Plan(fire=(1, 2))),
        (Overlap.SKIP, [1], False, None, Plan(fire=(1,))),
        (Overlap.SKIP, [1], True, None, Plan(skip=(1,))),
        (Overlap.SKIP, [1, 2], False, None, Plan(fire=(1,), skip=(2,))),
        (Overlap.QUEUE_ONE, [1], True, None, Plan(waiting=1)),
        (Overlap.QUEUE_ONE, [2], True, 1, Plan(skip=(2,), waiting=1)),
        (Overlap.QUEUE_ONE, [], False, 1, Plan(fire=(1,))),
        (Overlap.QUEUE_ONE, [], True, 1, Plan(waiting=1)),
        (Overlap.QUEUE_ONE, [1, 2, 3], False, None, Plan(fire=(1,), skip=(3,), waiting=2)),
        (Overlap.CANCEL_RUNNING, [1], False, None, Plan(fire=(1,))),
        (Overlap.CANCEL_RUNNING, [1], True, None, Plan(waiting=1, cancel=True)),
        (Overlap.CANCEL_RUNNING, [2], True, 1, Plan(skip=(1,), waiting=2, cancel=True)),
        (Overlap.CANCEL_RUNNING, [], False, 1, Plan(fire=(1,))),
    ],
)
def test_overlap(
    overlap: Overlap, ticks: list[int], is_live: bool, waiting: int | None, wanted: Plan
) -> None:
    assert plan(ticks, overlap, is_live=is_live, waiting=waiting) == wanted


@given(
    st.lists(st.integers(10, 99), unique=True).map(sorted),
    st.sampled_from(Overlap),
    st.booleans(),
    st.none() | st.integers(0, 9),
)
def test_no_tick_is_lost_or_doubled_and_only_one_runs_at_a_time(
    ticks: list[int], overlap: Overlap, is_live: bool, waiting: int | None
) -> None:
    if overlap in (Overlap.ALLOW, Overlap.SKIP):
        waiting = None  # only the other two make one wait
    made = plan(ticks, overlap, is_live=is_live, waiting=waiting)
    held = [] if made.waiting is None else [made.waiting]
    before = ticks if waiting is None else [*ticks, waiting]
    assert sorted([*made.fire, *made.skip, *held]) == sorted(before)
    if overlap is not Overlap.ALLOW:
        assert len(made.fire) + is_live <= 1


# -- jitter --------------------------------------------------------


@given(st.text(max_size=20), st.integers(0, 10**13), st.integers(0, 10**6))
def test_a_spread_is_within_bounds_and_the_same_every_time(name: str, tick: int, most: int) -> None:
    assert 0 <= spread_of(name, tick, most) <= most
    assert spread_of(name, tick, most) == spread_of(name, tick, most)


def test_schedules_of_one_moment_are_spread_apart() -> None:
    names = (f"s{n}" for n in count())
    assert len({spread_of(next(names), 0, 60_000) // 6000 for _ in range(200)}) == 10
