"""Floors: reached soon, shrunk together, and never a debt."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.fair_simulation import PLAIN, SECOND, Load, Simulation

from fairway.core.fair_share.fairness import Entitlement, PoolShare, ShareSettings
from fairway.core.fair_share.floors import Floors
from fairway.core.fair_share.queue import ShareNode, ShareQueue
from fairway.core.ids import TenantId


def test_a_floor_is_reached_within_a_second_in_a_full_pool_of_short_jobs() -> None:
    world = {
        1: Load(terms=Entitlement(weight=1, floor_share=100), from_us=10 * SECOND),
        2: Load(terms=Entitlement(weight=1000), run_us=(300_000,)),
    }
    sim = Simulation(100, world).run(11 * SECOND)
    assert sim.busy[1] >= 10
    sim.run(60 * SECOND)
    assert sim.share_of(1, 12 * SECOND) == pytest.approx(0.1, abs=0.01)


def test_floors_leave_a_fifth_of_the_pool_to_the_others() -> None:
    floored = {n: Load(terms=Entitlement(weight=1, floor_share=100)) for n in range(1, 16)}
    sim = Simulation(100, {**floored, 99: Load(terms=Entitlement(weight=10_000))}).run(20 * SECOND)
    assert sim.share_of(99, 5 * SECOND) >= 0.2
    assert min(sim.share_of(n, 5 * SECOND) for n in floored) >= 0.04


def test_use_within_the_floor_leaves_no_debt() -> None:
    world = {
        1: Load(terms=Entitlement(weight=1, floor_share=200), run_us=(5 * SECOND,)),
        2: Load(terms=Entitlement(weight=99)),
    }
    sim = Simulation(50, world).run(60 * SECOND)
    assert sim.share.standings.pool().floor_grants > 20
    sim.sleep(2)
    sim.wake(2)
    sim.set_entitlement(1, Entitlement(weight=99))
    sim.run(90 * SECOND)
    assert sim.share_of(1, 70 * SECOND) > 0.4


def test_terms_may_change_in_any_order_without_losing_count_of_the_floors() -> None:
    share = PoolShare(PLAIN)
    share.set_capacity(100, 0)
    share.wake(TenantId(1), 0)
    for terms in (
        Entitlement(floor_share=300),
        Entitlement(floor_share=300, group="free"),
        Entitlement(floor_share=200, weight=3),
        Entitlement(floor_share=200, cap=0),
        Entitlement(floor_share=100),
        Entitlement(group="free", floor_share=9),
        Entitlement(),
    ):
        share.set_entitlement(TenantId(1), terms, 0)
        counted = terms.floor_share if terms.group == "" and terms.cap is None else 0
        floors = share._competitors.floors
        assert (floors._share, floors._count) == (counted, int(counted > 0))


# ---- the heap itself

shares = st.lists(st.integers(1, 1000), min_size=1, max_size=8)


@given(st.integers(0, 300), shares, st.integers(0, 1000))
def test_all_floors_together_stay_within_their_part(
    slots: int, shares: list[int], max_share: int
) -> None:
    nodes = dict[TenantId, ShareNode]()
    floors, queue = Floors(nodes, max_share), ShareQueue(nodes, ShareSettings())
    floors.set_slots(slots)
    for tenant, share in enumerate(shares, 1):
        node = nodes[TenantId(tenant)] = ShareNode(
            TenantId(tenant), Entitlement(floor_share=share), queue
        )
        floors.add(node)
    while (neediest := floors.neediest()) is not None:
        assert floors.below(neediest)
        needs = {one: Fraction(one.running, one.floor_share) for one in nodes.values()}
        assert needs[neediest] == min(needs.values())
        neediest.running += 1
    assert floors.settled
    assert not any(map(floors.below, nodes.values()))
    assert sum(node.running for node in nodes.values()) <= slots * max_share // 1000
    room = slots * max_share // 1000 - len(shares)
    for node in nodes.values():
        assert (node.running - 1) * 1000 < slots * node.floor_share, "no more than rounded up"
        if room * 1000 >= slots * sum(shares):
            assert node.running * 1000 >= slots * node.floor_share


def test_who_loses_a_slot_is_found_again() -> None:
    nodes = dict[TenantId, ShareNode]()
    floors, queue = Floors(nodes, 800), ShareQueue(nodes, ShareSettings())
    floors.set_slots(100)
    nodes[TenantId(1)] = node = ShareNode(TenantId(1), Entitlement(floor_share=100), queue)
    floors.add(node)
    node.running = 10
    assert floors.neediest() is None
    node.running = 9
    floors.offer(node)
    assert not floors.settled
    assert floors.neediest() is node
    floors.remove(node)
    assert floors.neediest() is None
