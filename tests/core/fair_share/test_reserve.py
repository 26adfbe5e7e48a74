"""Reserved slots: there for their owner, lent for a short while only."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.fair_checks import watch_reservations
from tests.core.fair_simulation import SECOND, Load, Simulation

from fairway.core.fair_share.fairness import Entitlement, ShareSettings
from fairway.core.fair_share.queue import ShareNode, ShareQueue
from fairway.core.fair_share.reserve import Reserve
from fairway.core.ids import TenantId


def test_reserved_slots_are_there_when_their_owner_comes() -> None:
    world = {
        1: Load(terms=Entitlement(reserved=4), from_us=10 * SECOND, run_us=(SECOND,)),
        2: Load(run_us=(60 * SECOND,)),
    }
    sim = Simulation(10, world)
    sim.watchers.append(watch_reservations)
    sim.run(10 * SECOND)
    assert sim.busy == {1: 4, 2: 6}
    assert sim.run(60 * SECOND).violations == []


def test_idle_reserved_slots_are_lent_to_jobs_with_a_short_limit_only() -> None:
    world = {
        1: Load(terms=Entitlement(reserved=4), from_us=10 * SECOND),
        2: Load(run_us=(SECOND,), timeout_ms=2000),
        3: Load(run_us=(SECOND,), timeout_ms=2001),
    }
    sim = Simulation(10, world)
    sim.watchers.append(watch_reservations)
    sim.run(9 * SECOND)
    assert sim.kinds() == (0, 4)
    sim.run(13 * SECOND)
    assert sim.kinds() == (4, 0)
    assert sim.violations == []


def test_a_reservation_is_uncharged_and_its_overflow_goes_by_weight() -> None:
    sim = Simulation(30, {1: Load(terms=Entitlement(reserved=10)), 2: Load()}).run(60 * SECOND)
    assert sim.share_of(1, 2 * SECOND) == pytest.approx(2 / 3, abs=0.03)


def test_reservations_shrink_together_with_the_pool() -> None:
    world = {n: Load(terms=Entitlement(reserved=8), run_us=(SECOND,)) for n in (1, 2)}
    sim = Simulation(16, world)
    sim.at(5 * SECOND, lambda: sim.set_slots(8))
    sim.run(10 * SECOND)
    assert sim.busy == {1: 4, 2: 4}


# ---- the count itself

deeds = st.sampled_from(["promise", "fit", "start", "end"])
steps = st.lists(st.tuples(deeds, st.integers(1, 4), st.integers(0, 12)), max_size=40)


@given(steps)
def test_what_is_idle_is_what_the_owners_do_not_use(steps: list[tuple[str, int, int]]) -> None:
    reserve, capacity = Reserve(), 10
    queue = ShareQueue({}, ShareSettings())
    nodes = {tenant: ShareNode(TenantId(tenant), Entitlement(), queue) for tenant in range(1, 5)}
    promised, running = Counter[int](), Counter[int]()
    for deed, tenant, number in steps:
        if deed == "promise":
            assert reserve.set_promise(TenantId(tenant), number, capacity) == (
                promised[tenant] != number
            )
            promised[tenant] = number
        elif deed == "fit":
            capacity = number
            reserve.fit(capacity)
        elif deed == "start":
            reserve.start(nodes[tenant])
            running[tenant] += 1
        elif running[tenant]:
            reserve.end(nodes[tenant])
            running[tenant] -= 1
        whole = max(promised.total(), 1)
        parts = {one: min(part, part * capacity // whole) for one, part in promised.items()}
        assert reserve.total == sum(parts.values()) <= capacity
        rooms = {one: max(0, parts.get(one, 0) - running[one]) for one in nodes}
        assert {one: reserve.room(TenantId(one)) for one in nodes} == rooms
        assert reserve.idle == sum(rooms.values())


def test_who_is_open_has_work_and_room() -> None:
    reserve = Reserve()
    node = ShareNode(TenantId(1), Entitlement(), ShareQueue({}, ShareSettings()))
    reserve.set_promise(TenantId(1), 1, 10)
    reserve.review(node)
    assert not reserve.open, "it has no work"
    node.eligible = True
    reserve.review(node)
    assert reserve.open == {1: node}
    reserve.start(node)
    reserve.review(node)
    assert not reserve.open, "it has no room"
    reserve.end(node)
    node.aside = True
    reserve.review(node)
    assert not reserve.open, "it has nothing for the worker that asks"
