"""Slots that tenants' own workers offer: counted as they come and go, and bounded for each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.fair_share.own_slots import TENANT_SLOTS_MAX, OwnSlots
from fairway.core.ids import TenantId

offers = st.integers(0, TENANT_SLOTS_MAX // 2 + 10) | st.just(TENANT_SLOTS_MAX)
steps = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from([1, 2]), st.none() | offers), max_size=30
)


@given(steps)
def test_it_is_the_same_as_a_count_of_all(steps: list[tuple[str, int, int | None]]) -> None:
    own, said = OwnSlots(), dict[str, tuple[int, int]]()
    for session, tenant, slots in steps:
        if slots is None:
            own.forget(session)
            said.pop(session, None)
        else:
            others = sum(n for key, (of, n) in said.items() if of == tenant and key != session)
            fits = others + slots <= TENANT_SLOTS_MAX
            assert own.offer(session, TenantId(tenant), slots) == fits
            if fits:
                said[session] = (tenant, slots)
        for one in (1, 2):
            assert own.of(TenantId(one)) == sum(n for of, n in said.values() if of == one)
