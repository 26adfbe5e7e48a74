"""Fleets divide a pool's workers: together as many as are wanted, and nobody ends a busy one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.autoscale.division import Part, PoolWish, plan

small = st.integers(0, 50)


@given(st.integers(0, 10_000), st.integers(1, 50))
def test_parts_add_up(wanted: int, machines: int) -> None:
    parts = [Part(number, machines).cut(wanted) for number in range(1, machines + 1)]
    assert sum(parts) == wanted
    assert max(parts) - min(parts) <= 1


@given(small, small, st.lists(st.integers(0, 30), unique=True), st.sets(st.integers(0, 40)), small)
def test_a_fleet_ends_only_its_own_that_may_go_and_starts_no_more_than_is_missing(
    wanted: int, workers: int, numbers: list[int], idle: set[int], dead: int
) -> None:
    mine, may_go = [f"w{n}" for n in numbers], {f"w{n}" for n in idle}
    found = plan(PoolWish(wanted, workers, may_go), Part(), mine, dead)
    assert set(found.end) == may_go & set(mine)
    left = len(mine) - len(found.end)
    assert left + found.start <= max(wanted, left)
    if workers <= len(mine) + dead:  # nobody else is there
        assert left + found.start >= wanted


def test_workers_started_by_hand_count() -> None:
    assert plan(PoolWish(3, 3, ()), Part(), ["a", "b"], 0).start == 0
    assert plan(PoolWish(3, 2, ()), Part(), ["a", "b"], 0).start == 1


def test_one_that_died_is_replaced_while_the_platform_still_believes_in_it() -> None:
    assert plan(PoolWish(3, 3, ()), Part(), ["a", "b"], 1).start == 1


def test_machines_do_not_take_each_others_part() -> None:
    """The worker that may go was on the machine whose part did not shrink."""
    assert plan(PoolWish(9, 9, ()), Part(2, 2), ["a", "b", "c", "d"], 0).start == 0
