"""Floors, caps, reservations and the free group by example."""

from __future__ import annotations

import pytest
from tests.core.fair_checks import watch_reservations
from tests.core.fair_simulation import PLAIN, SECOND, Load, SimJob, Simulation

from fairway.core.fair_share.fairness import Entitlement, PoolShare, ShareSettings
from fairway.core.fair_share.standings import Waiting


def always(tenant: int) -> SimJob:
    return SimJob(tenant, 1, 0, None)


# ---- floors, caps, reservations


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
    assert sim.share.insight.pool().floor_grants > 20
    sim.sleep(2)
    sim.wake(2)
    sim.set_entitlement(1, Entitlement(weight=99))
    sim.run(90 * SECOND)
    assert sim.share_of(1, 70 * SECOND) > 0.4


def test_a_cap_lets_nobody_in_until_a_job_ends() -> None:
    share = PoolShare(PLAIN)
    share.set_capacity(10, 0)
    share.set_entitlement(1, Entitlement(cap=2), 0)
    share.wake(1, 0)
    granted = share.grant(10, always, 0)
    assert len(granted) == 2
    assert share.insight.standing(1, 0).waiting is Waiting.CAP
    share.finish(granted[0][1], SECOND)
    assert len(share.grant(10, always, SECOND)) == 1


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


def test_terms_may_change_in_any_order_without_losing_count_of_the_floors() -> None:
    share = PoolShare(PLAIN)
    share.set_capacity(100, 0)
    share.wake(1, 0)
    for terms in (
        Entitlement(floor_share=300),
        Entitlement(floor_share=300, group="free"),
        Entitlement(floor_share=200, weight=3),
        Entitlement(floor_share=200, cap=0),
        Entitlement(floor_share=100),
        Entitlement(group="free", floor_share=9),
        Entitlement(),
    ):
        share.set_entitlement(1, terms, 0)
        counted = terms.floor_share if terms.group == "" and terms.cap is None else 0
        floors = share._competitors.floors
        assert (floors._share, floors._count) == (counted, int(counted > 0))


# ---- free tenants


def test_free_work_keeps_its_slice_and_leaves_it_only_when_no_paid_work_waits() -> None:
    free = {n: Load(terms=Entitlement(group="free"), run_us=(200_000,)) for n in range(100, 140)}
    paid = Load(terms=Entitlement(weight=1000), run_us=(200_000,), from_us=10 * SECOND)
    sim = Simulation(100, {1: paid, **free}, ShareSettings())
    sim.at(30 * SECOND, lambda: sim.sleep(1))
    sim.run(40 * SECOND)
    assert sim.share_of(1, 0, 10 * SECOND) == 0
    assert sum(sim.busy.values()) == 100
    assert sim.share_of(1, 12 * SECOND, 30 * SECOND) == pytest.approx(0.95, abs=0.002)
    assert sim.share_of(1, 31 * SECOND, 40 * SECOND) == 0


def test_free_work_may_be_kept_from_filling_an_idle_pool() -> None:
    free = {n: Load(terms=Entitlement(group="free")) for n in range(100, 140)}
    sim = Simulation(100, free, ShareSettings(free_ceiling_share=300)).run(10 * SECOND)
    assert sum(sim.busy.values()) == 30


def test_in_a_pool_too_small_for_a_slice_free_work_goes_by_its_weight() -> None:
    settings = ShareSettings(free_weight=1)
    world = {1: Load(terms=Entitlement(weight=9)), 100: Load(terms=Entitlement(group="free"))}
    sim = Simulation(2, world, settings).run(200 * SECOND)
    assert sim.share_of(100) == pytest.approx(0.1, abs=0.02)


def test_a_tenant_takes_its_debt_and_its_jobs_into_the_free_group_and_back() -> None:
    sim = Simulation(10, {1: Load(), 2: Load()}, ShareSettings())
    sim.at(5 * SECOND + 1, lambda: sim.set_entitlement(1, Entitlement(group="free")))
    sim.run(10 * SECOND)
    group = sim.share._competitors.group
    assert group.running == sim.busy[1]
    assert sim.share_of(1, 6 * SECOND) == pytest.approx(1 / 11, abs=0.02)
    sim.at(10 * SECOND + 1, lambda: sim.set_entitlement(1, Entitlement()))
    sim.run(30 * SECOND)
    assert group.running == group.over == 0
    assert sim.share_of(1, 12 * SECOND) == pytest.approx(0.5, abs=0.06)
