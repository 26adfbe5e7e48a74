"""The properties of fair sharing by weight, over the real scheduler and invented worlds.

Numbers P1 to P17 are the names by which the properties go in the documentation; those that add
terms, failures or free tenants are in `test_fairness_guarantees.py`.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.core.fair_checks import (
    VirtualTimeWatcher,
    WatchedShare,
    hoarded,
    pairwise_gaps,
    unpaid_time,
    watch_work_conserving,
)
from tests.core.fair_simulation import LOOSE, PLAIN, SECOND, Load, Simulation
from tests.core.fair_worlds import (
    known,
    loads,
    moments,
    naps,
    slots,
    turns_us,
    weights,
    with_naps,
    with_terms,
)
from tests.properties import tried

from fairway.core.fair_share.fairness import Entitlement
from fairway.core.ids import TenantId


@tried(40)
@given(slots, loads(), naps(), turns_us)
def test_p1_the_smallest_virtual_time_under_its_guard_goes_next_up_to_a_turn(
    slots: int, loads: dict[int, Load], plan: list[tuple[int, int, int]], turn_us: int
) -> None:
    share = WatchedShare(replace(PLAIN, turn_us=turn_us))
    with_naps(Simulation(slots, loads, share=share), plan).run(20 * SECOND)
    assert share.watched.choices
    assert share.watched.violations == []


@tried(30)
@given(slots, loads())
def test_p2_equal_service_per_weight_up_to_a_few_jobs(slots: int, loads: dict[int, Load]) -> None:
    sim = Simulation(slots, known(loads)).run(60 * SECOND)
    spans = [(0, 60 * SECOND), (10 * SECOND, 30 * SECOND), (17 * SECOND, 18 * SECOND)]
    assert pairwise_gaps(sim, slots + 1, spans) == []  # what theory promises for so many slots
    assert pairwise_gaps(sim, 3, spans) == []  # what is measured is far closer


@tried(30)
@given(slots, loads(jobs=12), naps())
def test_p3_what_was_charged_is_what_ran(
    slots: int, loads: dict[int, Load], plan: list[tuple[int, int, int]]
) -> None:
    sim = Simulation(slots, loads)
    sim.share._competitors._sweep_at_us = 1 << 60  # keep every account until the end
    for tenant in loads:
        sim.share.wake(TenantId(tenant), 0)
    with_naps(sim, plan).run(1000 * SECOND)
    assert not sim.in_flight
    assert unpaid_time(sim) == []


@tried(40)
@given(slots, loads(), naps())
def test_p4_virtual_time_never_falls_nor_does_a_tenant_below_its_lift(
    slots: int, loads: dict[int, Load], plan: list[tuple[int, int, int]]
) -> None:
    sim = with_naps(Simulation(slots, loads), plan)
    sim.watchers.append(VirtualTimeWatcher())
    assert sim.run(25 * SECOND).violations == []


@tried(25)
@given(
    weight=st.sampled_from([5, 10, 20]),
    run_us=st.integers(20_000, SECOND),
    idle=st.integers(5, 600),
    believed_us=st.integers(10_000, 30 * SECOND),
)
def test_p5_an_idle_tenant_saves_up_nothing(
    weight: int, run_us: int, idle: int, believed_us: int
) -> None:
    world = {
        1: Load(run_us=(run_us,), terms=Entitlement(weight=weight), believed_us=believed_us),
        2: Load(run_us=(SECOND // 2,), terms=Entitlement(weight=10)),
    }
    sim = Simulation(20, world, LOOSE)
    back_us = (5 + idle) * SECOND
    sim.at(5 * SECOND, lambda: sim.sleep(1))
    sim.at(back_us, lambda: sim.wake(1))
    sim.run(back_us + 20 * SECOND)
    assert hoarded(sim, 1, back_us) == []


@tried(40)
@given(
    loads=loads(),
    asks=st.lists(
        st.tuples(
            st.sampled_from(["sleep", "wake", "weight", "floor_share", "cap"]), moments, weights
        ),
        max_size=20,
    ),
)
def test_p6_no_debt_is_shed_by_sleeping_or_by_new_terms(
    loads: dict[int, Load], asks: list[tuple[str, int, int]]
) -> None:
    sim = Simulation(3, loads)
    node_of = sim.share._competitors.node

    def ask(what: str, number: int) -> None:
        node = node_of(TenantId(1))
        node.accrue(sim.now_us)
        before = node.v - node.queue.v
        if what in ("sleep", "wake"):
            getattr(sim, what)(1)
        else:
            sim.set_entitlement(1, with_terms(sim.loads, what, [number])[1].terms)
        assert node_of(TenantId(1)).v - node.queue.v >= min(before, 0)
        assert node_of(TenantId(1)).v >= before + node.queue.v or before <= 0

    for what, when_us, number in asks:
        sim.at(when_us, lambda w=what, n=number: ask(w, n))  # type: ignore[misc]
    sim.run(20 * SECOND)


@tried(30)
@given(slots, loads(jobs=30), naps(), st.lists(st.integers(1, 4), min_size=5, max_size=5))
def test_p7_no_slot_is_idle_while_somebody_waits(
    slots: int, loads: dict[int, Load], plan: list[tuple[int, int, int]], caps: list[int]
) -> None:
    sim = with_naps(Simulation(slots, with_terms(loads, "cap", caps)), plan)
    sim.watchers.append(watch_work_conserving)
    assert sim.run(40 * SECOND).violations == []


@tried(30)
@given(
    st.integers(5, 40),
    loads(),
    naps(),
    st.lists(st.integers(0, 400), min_size=5, max_size=5),
)
def test_p8_whoever_is_below_its_floor_goes_first(
    slots: int, loads: dict[int, Load], plan: list[tuple[int, int, int]], floors: list[int]
) -> None:
    share = WatchedShare(PLAIN)
    floored = with_terms(loads, "floor_share", floors)
    with_naps(Simulation(slots, floored, share=share), plan).run(20 * SECOND)
    assert share.watched.violations == []
