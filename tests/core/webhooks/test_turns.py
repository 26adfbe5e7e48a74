"""Whoever does not answer is in nobody's way: by counts, for any number of tenants."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import TenantId
from fairway.core.webhooks.turns import Limits, Turns

LIMITS = Limits(quick=6, quick_per_tenant=2, slow=4, slow_per_tenant=1)
TENANTS, HOOKS = 5, 3
STEPS = st.tuples(
    st.sampled_from(["begin", "begin failing", "slowed", "end"]),
    st.integers(0, TENANTS - 1),
    st.integers(0, HOOKS - 1),
)


@given(st.lists(STEPS, max_size=60))
def test_no_room_holds_more_than_it_may_and_none_is_lost(
    steps: list[tuple[str, int, int]],
) -> None:
    turns, quick, slow = Turns(LIMITS), dict[str, int](), dict[str, int]()
    for what, tenant, number in steps:
        hook = f"{tenant}-{number}"
        if what.startswith("begin"):
            room, most, each = (
                (slow, LIMITS.slow, LIMITS.slow_per_tenant)
                if what == "begin failing"
                else (quick, LIMITS.quick, LIMITS.quick_per_tenant)
            )
            is_free = len(room) < most and list(room.values()).count(tenant) < each
            may = is_free and hook not in turns.busy
            assert turns.begin(hook, TenantId(tenant), is_failing=room is slow) == may
            if may:
                room[hook] = tenant
        elif what == "slowed" and hook in turns.busy:
            is_in = hook in slow
            is_free = len(slow) < LIMITS.slow and list(slow.values()).count(tenant) < 1
            assert turns.slowed(hook, TenantId(tenant)) == (is_in or is_free)
            quick.pop(hook, None)
            if is_free and not is_in:
                slow[hook] = tenant
        elif what == "end":
            turns.end(hook)
            quick.pop(hook, None)
            slow.pop(hook, None)
        assert turns.quick.free == LIMITS.quick - len(quick)
        assert turns.slow.free == LIMITS.slow - len(slow)
        assert len(turns.busy) >= len(quick) + len(slow)


def test_hundreds_that_hang_leave_the_quick_room_to_others() -> None:
    """Each may take a place once, for a moment; from then on it waits elsewhere, or not at all."""
    turns = Turns(Limits())
    hanging = [(f"{tenant}-{n}", TenantId(tenant)) for tenant in range(500) for n in range(20)]
    for hook, tenant in hanging:
        if turns.begin(hook, tenant, is_failing=False) and not turns.slowed(hook, tenant):
            turns.end(hook)
    assert turns.slow.free == 0
    assert turns.quick.free == Limits().quick
    assert turns.begin("good", TenantId(1), is_failing=False)
    assert not turns.begin("bad", TenantId(9999), is_failing=True)
