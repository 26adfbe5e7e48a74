"""The properties of fair sharing, over the real scheduler and invented worlds.

Numbers P1 to P17 are the names by which these properties go in the documentation. The variable
FAIRWAY_PROPERTY_EXAMPLES multiplies how many worlds are tried.
"""

from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.core.fair_checks import (
    VirtualTimeWatcher,
    WatchedShare,
    hoarded,
    longest_waits,
    pairwise_gaps,
    share_errors,
    unpaid_time,
    watch_caps,
    watch_reservations,
    watch_work_conserving,
)
from tests.core.fair_simulation import ENDLESS, LOOSE, PLAIN, SECOND, Load, Simulation

from fairway.core.fairness import PoolShare, ShareSettings, Terms
from fairway.core.share_node import SCALE, TENANT_BITS

FACTOR = max(1, int(os.environ.get("FAIRWAY_PROPERTY_EXAMPLES", "1")))


def tried(examples: int) -> settings:
    return settings(
        max_examples=examples * FACTOR,
        deadline=None,
        derandomize=FACTOR == 1,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


weights = st.sampled_from([1, 2, 3, 5, 10, 10, 10, 100])
run_times = st.integers(20_000, 4 * SECOND)


@st.composite
def loads(draw: st.DrawFn, *, jobs: int = ENDLESS, most: int = 5) -> dict[int, Load]:
    """Two or more tenants that always have work, known rightly or wrongly."""
    return {
        tenant: Load(
            terms=Terms(weight=draw(weights)),
            run_us=tuple(draw(st.lists(run_times, min_size=1, max_size=3))),
            believed_us=draw(st.none() | st.integers(1_000, 30 * SECOND)),
            jobs=jobs if jobs == ENDLESS else draw(st.integers(1, jobs)),
        )
        for tenant in range(1, draw(st.integers(2, most)) + 1)
    }


slots = st.integers(1, 12)
moments = st.integers(0, 20 * SECOND)


@st.composite
def naps(draw: st.DrawFn, tenants: int = 5) -> list[tuple[int, int, int]]:
    """Tenants that fall asleep for a while: who, when, how long."""
    nap = st.tuples(st.integers(1, tenants), moments, st.integers(1, 8 * SECOND))
    return draw(st.lists(nap, max_size=8))


def with_naps(sim: Simulation, plan: list[tuple[int, int, int]]) -> Simulation:
    for tenant, from_us, nap_us in plan:
        if tenant in sim.loads:
            sim.at(from_us, lambda who=tenant: sim.sleep(who))  # type: ignore[misc]
            sim.at(from_us + nap_us, lambda who=tenant: sim.wake(who))  # type: ignore[misc]
    return sim


@tried(40)
@given(slots, loads(), naps())
def test_p1_the_smallest_virtual_time_under_its_guard_goes_next(
    slots: int, loads: dict[int, Load], plan: list[tuple[int, int, int]]
) -> None:
    share = WatchedShare(PLAIN)
    with_naps(Simulation(slots, loads, share=share), plan).run(20 * SECOND)
    assert share.choices
    assert share.violations == []


@tried(30)
@given(slots, loads())
def test_p2_equal_service_per_weight_up_to_a_few_jobs(slots: int, loads: dict[int, Load]) -> None:
    known = {t: replace(load, believed_us=max(load.run_us)) for t, load in loads.items()}
    sim = Simulation(slots, known).run(60 * SECOND)
    spans = [(0, 60 * SECOND), (10 * SECOND, 30 * SECOND), (17 * SECOND, 18 * SECOND)]
    assert pairwise_gaps(sim, slots + 1, spans) == []


@tried(30)
@given(slots, loads(jobs=12), naps())
def test_p3_what_was_charged_is_what_ran(
    slots: int, loads: dict[int, Load], plan: list[tuple[int, int, int]]
) -> None:
    sim = Simulation(slots, loads)
    sim.share._roster._sweep_at_us = 1 << 60  # keep every account until the end
    for tenant in loads:
        sim.share.wake(tenant, 0)
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
        1: Load(run_us=(run_us,), terms=Terms(weight=weight), believed_us=believed_us),
        2: Load(run_us=(SECOND // 2,), terms=Terms(weight=10)),
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
        st.tuples(st.sampled_from(["sleep", "wake", "weight", "floor", "cap"]), moments, weights),
        max_size=20,
    ),
)
def test_p6_no_debt_is_shed_by_sleeping_or_by_new_terms(
    loads: dict[int, Load], asks: list[tuple[str, int, int]]
) -> None:
    sim = Simulation(3, loads)
    node_of = sim.share._roster.node

    def ask(what: str, number: int) -> None:
        node = node_of(1)
        node.accrue(sim.now_us)
        before = node.v - node.queue.v
        if what in ("sleep", "wake"):
            getattr(sim, what)(1)
        else:
            field = {"weight": "weight", "floor": "floor_share", "cap": "cap"}[what]
            sim.set_terms(1, replace(sim.loads[1].terms, **{field: number}))
        assert node_of(1).v - node.queue.v >= min(before, 0)
        assert node_of(1).v >= before + node.queue.v or before <= 0

    for what, when_us, number in asks:
        sim.at(when_us, lambda w=what, n=number: ask(w, n))  # type: ignore[misc]
    sim.run(20 * SECOND)


@tried(30)
@given(slots, loads(jobs=30), naps(), st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_p7_no_slot_is_idle_while_somebody_waits(
    slots: int, loads: dict[int, Load], plan: list[tuple[int, int, int]], caps: list[int]
) -> None:
    capped = {
        tenant: replace(load, terms=replace(load.terms, cap=caps[tenant - 1] or None))
        for tenant, load in loads.items()
    }
    sim = with_naps(Simulation(slots, capped), plan)
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
    floored = {
        tenant: replace(load, terms=replace(load.terms, floor_share=floors[tenant - 1]))
        for tenant, load in loads.items()
    }
    share = WatchedShare(PLAIN)
    with_naps(Simulation(slots, floored, share=share), plan).run(20 * SECOND)
    assert share.violations == []


@tried(30)
@given(
    slots=st.integers(4, 12),
    loads=loads(jobs=40),
    plan=naps(),
    reserved=st.lists(st.integers(0, 4), min_size=5, max_size=5),
    limits=st.lists(st.sampled_from([None, 500, 2000, 2001, 9000]), min_size=5, max_size=5),
)
def test_p9_reserved_slots_wait_for_their_owner(
    slots: int,
    loads: dict[int, Load],
    plan: list[tuple[int, int, int]],
    reserved: list[int],
    limits: list[int | None],
) -> None:
    world = {
        tenant: replace(
            load,
            terms=replace(load.terms, reserved=reserved[tenant - 1]),
            timeout_ms=limits[tenant - 1],
        )
        for tenant, load in loads.items()
    }
    sim = with_naps(Simulation(slots, world), plan)
    sim.watchers.append(watch_reservations)
    assert sim.run(20 * SECOND).violations == []


@tried(30)
@given(slots, loads(), naps(), st.lists(st.integers(0, 5), min_size=5, max_size=5), moments)
def test_p10_caps_hold_and_outlive_a_failover(
    slots: int,
    loads: dict[int, Load],
    plan: list[tuple[int, int, int]],
    caps: list[int],
    lost_us: int,
) -> None:
    capped = {
        tenant: replace(load, terms=replace(load.terms, cap=caps[tenant - 1]))
        for tenant, load in loads.items()
    }
    sim = with_naps(Simulation(slots, capped), plan)
    sim.watchers.append(watch_caps)
    sim.at(lost_us, lambda: sim.fail_over([], PoolShare(PLAIN)))
    assert sim.run(25 * SECOND).violations == []


@tried(25)
@given(slots, loads(), st.sampled_from([2, 3, 7, 10, 100, 1000]))
def test_p11_only_the_ratio_of_weights_counts(
    slots: int, loads: dict[int, Load], factor: int
) -> None:
    scaled = {
        tenant: replace(load, terms=replace(load.terms, weight=load.terms.weight * factor))
        for tenant, load in loads.items()
    }
    assume(all(SCALE % load.terms.weight == 0 for load in scaled.values()))
    one, other = Simulation(slots, loads), Simulation(slots, scaled)
    assert one.run(20 * SECOND).schedule() == other.run(20 * SECOND).schedule()


@tried(12)
@given(loads(most=3), st.integers(2, 200))
def test_p12_a_crowd_of_free_tenants_weighs_no_more_than_one(
    loads: dict[int, Load], crowd: int
) -> None:
    services = []
    for free_tenants in (1, crowd):
        free = {
            100 + n: Load(terms=Terms(group="free"), run_us=(SECOND // 2,), believed_us=SECOND // 2)
            for n in range(free_tenants)
        }
        sim = Simulation(20, {**loads, **free}, ShareSettings()).run(20 * SECOND)
        services.append([sim.received_us(tenant) for tenant in loads])
    for tenant, one, many in zip(loads, *services, strict=True):
        assert abs(one - many) <= 21 * max(loads[tenant].run_us) + 21 * SECOND // 2


@tried(15)
@given(
    factors=st.lists(st.floats(0.001, 1), min_size=3, max_size=3),
    run_us=st.lists(st.integers(SECOND // 5, 120 * SECOND), min_size=3, max_size=3),
    weights=st.lists(st.integers(10, 20), min_size=3, max_size=3),
)
def test_p13_under_estimates_do_not_move_the_shares(
    factors: list[float], run_us: list[int], weights: list[int]
) -> None:
    world = {
        n + 1: Load(
            terms=Terms(weight=weights[n]),
            run_us=(run_us[n],),
            believed_us=round(min(run_us[n], 10 * SECOND) * factors[n]),
        )
        for n in range(3)
    }
    sim = Simulation(60, world).run(60 * SECOND)
    assert share_errors(sim, 0.15, (0, 60 * SECOND)) == []


@tried(30)
@given(slots, loads(), naps())
def test_p14_many_at_once_are_the_same_as_one_by_one(
    slots: int, loads: dict[int, Load], plan: list[tuple[int, int, int]]
) -> None:
    batched = with_naps(Simulation(slots, loads), plan)
    single = with_naps(Simulation(slots, loads), plan)
    single.single_steps = True
    assert batched.run(20 * SECOND).schedule() == single.run(20 * SECOND).schedule()


@tried(25)
@given(slots, loads())
def test_p15_everybody_gets_a_turn(slots: int, loads: dict[int, Load]) -> None:
    known = {t: replace(load, believed_us=max(load.run_us)) for t, load in loads.items()}
    sim = Simulation(slots, known).run(60 * SECOND)
    assert longest_waits(sim, slack_us=SECOND) == []


@tried(25)
@given(slots, loads(), st.integers(2, 30), st.integers(100_000, 5 * SECOND))
def test_p16_a_failover_costs_no_more_than_a_checkpoint_interval(
    slots: int, loads: dict[int, Load], at: int, interval_us: int
) -> None:
    known = {t: replace(load, believed_us=max(load.run_us)) for t, load in loads.items()}
    sim = Simulation(slots, known)
    lost_us, rows = at * SECOND, {}
    for time_us in range(0, lost_us - interval_us + 1, interval_us):
        sim.at(time_us, lambda: rows.update(sim.share.checkpoint(sim.now_us)))
    sim.at(lost_us, lambda: sim.fail_over(list(rows.items()), PoolShare(PLAIN)))
    sim.run(60 * SECOND)
    lightest = min(load.terms.weight for load in loads.values())
    lost_us_per_weight = 2 * interval_us * slots / lightest
    assert pairwise_gaps(sim, slots + 1, [(0, 60 * SECOND)], lost_us_per_weight) == []


@tried(20)
@given(slots, loads(), naps())
def test_p17_the_same_events_give_the_same_schedule(
    slots: int, loads: dict[int, Load], plan: list[tuple[int, int, int]]
) -> None:
    one = with_naps(Simulation(slots, loads, ShareSettings()), plan).run(20 * SECOND)
    two = with_naps(Simulation(slots, loads, ShareSettings()), plan).run(20 * SECOND)
    assert one.schedule() == two.schedule()
    assert one.share.checkpoint(one.now_us) == two.share.checkpoint(two.now_us)


@tried(20)
@given(st.integers(1, 100_000), st.integers(0, 60 * SECOND))
def test_any_weight_is_charged_in_whole_units(weight: int, run_us: int) -> None:
    share = PoolShare(PLAIN)
    share.set_terms(7, Terms(weight=weight), 0)
    node = share._roster.node(7)
    assert node.stride % (1 << TENANT_BITS) == 0
    assert abs((node.stride >> TENANT_BITS) * weight / SCALE - 1) < 4e-5
