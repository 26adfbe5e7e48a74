"""Tenants in turn: everything comes once, and nobody waits for more than one of another's."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.backpressure.round_robin import in_turn
from fairway.core.ids import TenantId

WAITING = st.dictionaries(
    st.integers(1, 8).map(TenantId), st.lists(st.integers(), max_size=6), max_size=8
)
AFTER = st.integers(0, 9)


@given(WAITING, AFTER)
def test_everything_comes_once_and_each_tenants_own_in_its_order(
    waiting: dict[TenantId, list[int]], after: int
) -> None:
    found = list(in_turn(waiting, TenantId(after)))
    for tenant, items in waiting.items():
        assert [item for whose, item in found if whose == tenant] == items
    assert len(found) == sum(map(len, waiting.values()))


@given(WAITING, AFTER)
def test_nobody_has_a_second_turn_while_another_waits_for_its_first(
    waiting: dict[TenantId, list[int]], after: int
) -> None:
    had = Counter[int]()
    for tenant, _ in in_turn(waiting, TenantId(after)):
        had[tenant] += 1
        for other, items in waiting.items():
            assert had[other] in (len(items), had[tenant] - 1, had[tenant])


@given(st.sets(st.integers(1, 8).map(TenantId), min_size=1), st.integers(1, 8))
def test_who_stops_halfway_and_goes_on_leaves_nobody_out(tenants: set[TenantId], stop: int) -> None:
    """Each always has very much: as many turns as there are tenants reach all of them."""
    waiting, last, had = {tenant: [0] * 9 for tenant in tenants}, 0, list[int]()
    while len(had) < len(tenants):
        for (tenant, _), _ in zip(in_turn(waiting, TenantId(last)), range(stop), strict=False):
            had.append(tenant)
            last = tenant
    assert set(had[: len(tenants)]) == tenants
