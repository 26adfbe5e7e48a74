"""Debts as rows: what is written and restored is what was owed, and nobody gains by a failover."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.fair_simulation import PLAIN, SECOND, Load, Simulation

from fairway.core.fair_share.fairness import Entitlement, PoolShare
from fairway.core.ids import TenantId

SLOTS = 4
TENANTS = (1, 2, 3)
WEIGHTS = st.sampled_from([1, 10, 100, 1000])
few = settings(max_examples=40, deadline=None)


def indebted(weights: tuple[int, ...], long_us: int) -> Simulation:
    """Tenant 1 runs jobs believed short that are long; the others come when all slots are taken."""
    loads = {
        tenant: Load(terms=Entitlement(weight=weight), run_us=(long_us if tenant == 1 else SECOND,),
                     believed_us=SECOND // 10, from_us=0 if tenant == 1 else SECOND)
        for tenant, weight in zip(TENANTS, weights, strict=True)
    }  # fmt: skip
    return Simulation(SLOTS, loads, PLAIN)


def successor(sim: Simulation, rows: list[tuple[TenantId, int]]) -> PoolShare:
    share = PoolShare(PLAIN)
    for tenant, load in sim.loads.items():
        share.set_entitlement(TenantId(tenant), load.terms, sim.now_us)
    share.set_capacity(SLOTS, sim.now_us)
    share.restore(rows, sim.now_us)
    return share


def debts(share: PoolShare, now_us: int) -> dict[TenantId, int]:
    return {
        TenantId(tenant): share.standings.standing(TenantId(tenant), now_us).debt_us
        for tenant in TENANTS
    }


@given(st.tuples(WEIGHTS, WEIGHTS, WEIGHTS), st.integers(1, 60))
@few
def test_what_is_restored_is_what_was_owed(weights: tuple[int, ...], seconds: int) -> None:
    """To the microsecond of weight 1; less than a second of one slot is not worth a row."""
    sim = indebted(weights, 30 * SECOND).run(seconds * SECOND)
    rows = sim.share.checkpoint(sim.now_us)
    before, after = debts(sim.share, sim.now_us), debts(successor(sim, rows), sim.now_us)
    for tenant, weight in zip(TENANTS, weights, strict=True):
        owed_us = max(0, before[TenantId(tenant)])
        if owed_us < SECOND:
            assert after[TenantId(tenant)] in (0, pytest.approx(owed_us, abs=weight))
        else:
            assert owed_us - weight <= after[TenantId(tenant)] <= owed_us


@given(st.tuples(WEIGHTS, WEIGHTS, WEIGHTS), st.integers(1, 60))
@few
def test_only_what_changed_is_written_again(weights: tuple[int, ...], seconds: int) -> None:
    sim = indebted(weights, 30 * SECOND).run(seconds * SECOND)
    rows = dict(sim.share.checkpoint(sim.now_us))
    assert sim.share.checkpoint(sim.now_us) == []
    assert all(row > 0 for row in rows.values())
    restored = successor(sim, list(rows.items()))
    assert [row for row in restored.checkpoint(sim.now_us) if row[0] in rows] == []


def test_a_debt_that_is_paid_leaves_a_row_of_zero() -> None:
    sim = indebted((10, 10, 10), 20 * SECOND).run(10 * SECOND)
    assert dict(sim.share.checkpoint(sim.now_us))[TenantId(1)] > 0
    sim.sleep(1)
    sim.run(200 * SECOND)
    assert (1, 0) in sim.share.checkpoint(sim.now_us)


def test_a_debtor_is_not_served_before_the_others_after_a_failover() -> None:
    sim = indebted((10, 10, 10), 10 * SECOND).run(9 * SECOND)
    rows = sim.share.checkpoint(sim.now_us)
    sim.in_flight.clear()  # its workers died with the owner
    sim.busy.clear()
    share = successor(sim, rows)
    for tenant in TENANTS:
        share.wake(TenantId(tenant), sim.now_us)
    granted = share.grant(SLOTS, sim._take, sim.now_us)
    assert {job.tenant for job, _ in granted} == {2, 3}
    forgetful = successor(sim, [])
    for tenant in TENANTS:
        forgetful.wake(TenantId(tenant), sim.now_us)
    granted = forgetful.grant(SLOTS, sim._take, sim.now_us)
    assert 1 in {job.tenant for job, _ in granted}  # so the rows are what made the difference


def test_the_free_groups_debt_is_kept_too() -> None:
    free, paid = Entitlement(weight=1, group="free"), Entitlement(weight=10)
    loads = {
        1: Load(terms=free, run_us=(60 * SECOND,), believed_us=SECOND // 10),
        2: Load(terms=paid, run_us=(SECOND,), from_us=SECOND),
        3: Load(terms=free, run_us=(SECOND,), from_us=SECOND),
    }
    sim = Simulation(SLOTS, loads, PLAIN).run(30 * SECOND)
    rows = dict(sim.share.checkpoint(sim.now_us))
    assert rows[TenantId(0)] > 0
    share = successor(sim, list(rows.items()))
    for tenant in TENANTS:
        share.wake(TenantId(tenant), sim.now_us)
    granted = share.grant(2, sim._take, sim.now_us)
    assert [job.tenant for job, _ in granted] == [2, 2]
