"""What a tenant got of late: figures over half a minute to a whole one, true to what happened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.fair_simulation import PLAIN, SECOND, Load, Simulation

from fairway.core.fair_share.fairness import Entitlement
from fairway.core.fair_share.history import HALF_US, Recent, ShareHistory, Totals
from fairway.core.ids import TenantId

PASS_US = 5 * SECOND


def totals(at_us: int, received_us: int = 0, entitled_us: int = 0) -> Totals:
    return Totals(TenantId(1), at_us, received_us, entitled_us)


@given(st.integers(0, 300), st.integers(0, 4_999_999), st.integers(0, 10**9))
def test_an_answer_covers_half_a_minute_to_a_whole_one(
    passes: int, after_us: int, from_us: int
) -> None:
    history = ShareHistory()
    for number in range(passes + 1):
        moment_us = from_us + number * PASS_US
        history.turn(moment_us)
        history.note([totals(moment_us, 3 * moment_us, 2 * moment_us)])
    now_us = from_us + passes * PASS_US + after_us
    recent = history.recent(totals(now_us, 3 * now_us, 2 * now_us))
    if recent is None:
        assert now_us == from_us
        return
    assert recent == Recent(recent.window_us, 3 * recent.window_us, 2 * recent.window_us)
    assert recent.window_us <= 2 * HALF_US + PASS_US
    assert recent.window_us >= min(HALF_US, now_us - from_us)


def test_a_tenant_without_a_mark_has_no_answer() -> None:
    history = ShareHistory()
    history.note([totals(5)])
    assert history.recent(Totals(TenantId(2), 9, 0, 0)) is None
    assert history.recent(totals(5)) is None  # no time has passed


def test_an_idle_tenant_is_forgotten() -> None:
    history = ShareHistory()
    history.turn(HALF_US)
    history.note([totals(HALF_US)])
    history.turn(2 * HALF_US)
    assert history.recent(totals(2 * HALF_US + 1)) is not None
    history.turn(3 * HALF_US)
    assert history.recent(totals(3 * HALF_US + 1)) is None


@pytest.mark.parametrize("tenants", [2, 5])
def test_entitlement_over_the_last_minute_is_the_fair_share_of_it(tenants: int) -> None:
    """Taken from the real scheduler, with marks as the keeper takes them."""
    sim = Simulation(10, {n: Load(run_us=(SECOND,)) for n in range(1, tenants + 1)}, PLAIN)
    history = ShareHistory()
    for number in range(1, 25):
        sim.run(number * PASS_US)
        history.turn(sim.now_us)
        history.note(sim.share.standings.totals(sim.share.tenants(), sim.now_us))
    sim.run(sim.now_us + SECOND)
    for now in sim.share.standings.totals(map(TenantId, sim.loads), sim.now_us):
        recent = history.recent(now)
        assert recent is not None
        fair_us = 10 * recent.window_us / tenants
        assert recent.entitled_us == pytest.approx(fair_us, rel=0.01)
        assert recent.received_us == pytest.approx(fair_us, rel=0.1)


def test_asking_does_not_change_what_is_answered() -> None:
    asked, unasked = (Simulation(4, {1: Load(), 2: Load()}, PLAIN) for _ in range(2))
    for second in range(1, 21):
        asked.run(second * SECOND).share.standings.totals([TenantId(1), TenantId(2)], asked.now_us)
    unasked.run(20 * SECOND)
    one, other = (
        sim.share.standings.totals([TenantId(1), TenantId(2)], sim.now_us)
        for sim in (asked, unasked)
    )
    for mine, theirs in zip(one, other, strict=True):
        assert mine.received_us == theirs.received_us
        assert mine.entitled_us == pytest.approx(theirs.entitled_us, abs=20)  # rounded each time


def test_a_cap_bounds_what_is_fair_and_an_absent_tenant_has_a_fair_share_too() -> None:
    loads = {1: Load(), 2: Load(terms=Entitlement(cap=1)), 3: Load(from_us=99 * SECOND)}
    sim = Simulation(8, loads, PLAIN).run(SECOND)
    slots = [sim.share.standings.standing(TenantId(n), sim.now_us).fair_slots_milli for n in (2, 3)]
    assert slots[0] == 1000
    assert slots[1] >= 2000
