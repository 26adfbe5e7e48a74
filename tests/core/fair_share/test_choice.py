"""Whose job runs next, by example: caps, then the free group inside and outside its slice."""

from __future__ import annotations

import pytest
from tests.core.fair_simulation import PLAIN, SECOND, Load, SimJob, Simulation

from fairway.core.fair_share.fairness import Entitlement, PoolShare, ShareSettings
from fairway.core.fair_share.standings import Waiting
from fairway.core.ids import TenantId, TypeId


def always(tenant: int) -> SimJob:
    return SimJob(tenant, TypeId(1), 0, None)


# ---- floors, caps, reservations


def test_a_cap_lets_nobody_in_until_a_job_ends() -> None:
    share = PoolShare(PLAIN)
    share.set_capacity(10, 0)
    share.set_entitlement(TenantId(1), Entitlement(cap=2), 0)
    share.wake(TenantId(1), 0)
    granted = share.grant(10, always, 0)
    assert len(granted) == 2
    assert share.standings.standing(TenantId(1), 0).waiting is Waiting.CAP
    share.finish(granted[0][1], SECOND)
    assert len(share.grant(10, always, SECOND)) == 1


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
