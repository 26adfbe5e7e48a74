"""Who competes in a pool: every count kept is the count of all nodes, whatever happened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.core.fair_simulation import SECOND, SimJob
from tests.properties import tried

from fairway.core.fair_share.competitors import GROUP, Competitors
from fairway.core.fair_share.entitlements import Entitlement, ShareSettings
from fairway.core.fair_share.fairness import PoolShare, Running
from fairway.core.ids import TenantId, TypeId

TERMS = (
    Entitlement(),
    Entitlement(weight=3),
    Entitlement(floor_share=100),
    Entitlement(cap=1),
    Entitlement(reserved=2),
    Entitlement(group="free"),
    Entitlement(group="free", cap=1),
)
Step = tuple[str, int, int, int]

deeds = st.sampled_from(["wake", "wake", "sleep", "terms", "grant", "grant", "finish", "slots"])
steps = st.lists(
    st.tuples(deeds, st.integers(1, 5), st.integers(0, 12), st.integers(0, SECOND)), max_size=50
)


def play(share: PoolShare, steps: list[Step]) -> list[Running]:
    """Answers what still runs."""
    now_us, running = 0, list[Running]()
    for deed, tenant, number, gap_us in steps:
        now_us += gap_us
        if deed == "wake":
            share.wake(TenantId(tenant), now_us)
        elif deed == "sleep":
            share.sleep(TenantId(tenant), now_us)
        elif deed == "terms":
            share.set_entitlement(TenantId(tenant), TERMS[number % len(TERMS)], now_us)
        elif deed == "slots":
            share.set_capacity(number, now_us)
        elif deed == "grant":
            found = share.grant(number % 4, lambda who: SimJob(who, TypeId(1), 0, None), now_us)
            running += [one for _, one in found]
        elif running:
            share.finish(running.pop(number % len(running)), now_us)
        check(share._competitors)
    return running


def check(all_: Competitors) -> None:
    nodes = [node for tenant, node in all_.nodes.items() if tenant != GROUP]
    children = [node for node in nodes if node.parent is not None]
    paid = [node for node in nodes if node.parent is None and node.eligible]
    free = [node for node in children if node.eligible]
    group = [all_.group] if all_.group.eligible else []
    assert all_.paid.eligible == len(paid) + len(group)
    assert all_.paid.weight == sum(node.weight for node in (*paid, *group))
    assert (all_.free.eligible, all_.free.weight) == (len(free), sum(node.weight for node in free))
    assert all_.group.awake == bool(free)
    assert all_.group.running == sum(node.running for node in children)
    for queue in (all_.paid, all_.free):
        busy = [node for node in (*nodes, all_.group) if node.running and node.queue is queue]
        assert queue.occupied == {node.tenant: node for node in busy}
    assert all_.floors._share == sum(node.floor_share for node in paid)
    assert all_.running == sum(node.running + node.uncharged_running for node in nodes)
    for node in nodes:
        assert node.eligible == (node.awake and node.running + node.uncharged_running < node.cap), (
            node.tenant
        )
        assert node.queue is all_.queue_of(node.tenant)


@tried(100)
@given(steps)
def test_what_is_counted_is_what_is_there(steps: list[Step]) -> None:
    share = PoolShare(ShareSettings())
    share.set_capacity(8, 0)
    play(share, steps)


@tried(100)
@given(steps)
def test_in_the_end_nothing_is_kept_of_who_is_gone(steps: list[Step]) -> None:
    share, later_us = PoolShare(ShareSettings()), 10_000 * SECOND
    share.set_capacity(8, 0)
    for running in play(share, steps):
        share.finish(running, later_us)
    for tenant in range(1, 6):
        share.sleep(TenantId(tenant), later_us)
    for hour in range(1, 4):
        share.tick(later_us + hour * 3600 * SECOND)
    assert set(share._competitors.nodes) == {GROUP}
    assert share._competitors.recently_active.weight == 0
