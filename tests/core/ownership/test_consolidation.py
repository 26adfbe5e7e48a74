"""How many of one server's processes own shards: never none, as few as will do, and it settles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.properties import tried

from fairway.core.ownership.consolidation import (
    GATHER_PER_MILLE,
    SPREAD_PER_MILLE,
    owners_needed,
)

BUSY = st.lists(st.integers(0, 1000), max_size=8)
ADDED = st.lists(st.integers(0, 1000), min_size=8, max_size=8)


@tried()
@given(BUSY, st.integers(0, 8))
def test_one_at_least_goes_on_and_one_at_a_time_stops(busy: list[int], idle: int) -> None:
    processes = len(busy) + idle or 1
    needed = owners_needed(busy, processes)
    assert 1 <= needed <= processes
    assert needed >= len(busy) - 1


@tried()
@given(BUSY, st.floats(1.0, 8.0))
def test_work_that_is_about_to_come_is_counted(busy: list[int], growth: float) -> None:
    needed = owners_needed(busy, 8, growth)
    assert needed >= owners_needed(busy, 8)
    used = sum(busy) * growth
    if used > SPREAD_PER_MILLE * len(busy):
        assert needed == 8 or used <= SPREAD_PER_MILLE * needed


@tried()
@given(BUSY, st.integers(0, 1000))
def test_who_uses_more_is_never_given_less_help(busy: list[int], more: int) -> None:
    with_more = [*busy[:-1], busy[-1] + more] if busy else busy
    assert owners_needed(busy, 8) <= owners_needed(with_more, 8)


@tried()
@given(st.integers(0, 8000), ADDED)
def test_it_comes_to_rest_though_more_owners_cost_more(work: int, added: list[int]) -> None:
    """The same work on one owner more costs as much and something; then none leaves again."""
    owners = owners_needed([], 8)
    seen = [owners]
    for _ in range(20):
        used = work + sum(added[:owners])
        owners = owners_needed([used // owners] * owners, 8)
        seen.append(owners)
    assert seen == sorted(seen), "work that stays the same makes nobody stop that just joined"
    assert seen[-1] == seen[-2]


def test_the_next_one_joins_when_those_that_are_there_have_little_left() -> None:
    assert owners_needed([SPREAD_PER_MILLE], 4) == 1
    assert owners_needed([SPREAD_PER_MILLE + 1], 4) == 2
    assert owners_needed([1000, 50], 4) == 2, "one tenant's shard cannot be shared out"
    assert owners_needed([GATHER_PER_MILLE // 2] * 2, 4) == 2
    assert owners_needed([GATHER_PER_MILLE // 2 - 1] * 2, 4) == 1
    assert owners_needed([1000] * 4, 4) == 4
