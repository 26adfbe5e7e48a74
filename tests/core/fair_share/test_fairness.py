"""Fair sharing by example: the figures people are promised, and the corners of the rules."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from statistics import quantiles
from time import perf_counter

import pytest
from tests.core.fair_checks import hoarded, share_errors
from tests.core.fair_simulation import LOOSE, PLAIN, SECOND, Load, SimJob, Simulation

from fairway.core.fair_share.fairness import Entitlement, PoolShare, Running, ShareSettings
from fairway.core.ids import TenantId, TypeId


def always(tenant: int) -> SimJob:
    return SimJob(tenant, TypeId(1), 0, None)


def never(tenant: int) -> SimJob | None:
    return None


def pool(slots: int, *tenants: int, settings: ShareSettings = PLAIN) -> PoolShare:
    share = PoolShare(settings)
    share.set_capacity(slots, 0)
    for tenant in tenants:
        share.wake(TenantId(tenant), 0)
    return share


def tenants_of(granted: list[tuple[SimJob, Running]]) -> list[int]:
    return [job.tenant for job, _ in granted]


# ---- turns


@pytest.mark.parametrize(("slots", "jobs_in_turn"), [(40, 1), (2_000, 11), (10_000, 51)])
def test_a_turn_is_as_much_slot_time_as_the_pool_works_off_at_once(
    slots: int, jobs_in_turn: int
) -> None:
    share = pool(slots, 1, 2, 3)
    share.expect(TypeId(1), 100_000)
    order = tenants_of(share.grant(6 * jobs_in_turn, always, 0))
    turns = [len(list(jobs)) for _, jobs in groupby(order)]
    assert turns == [jobs_in_turn] * 6
    assert jobs_in_turn <= slots * PLAIN.turn_us / 100_000 + 1


def test_a_turn_ends_where_fair_slots_do() -> None:
    share = pool(2_000, *range(1, 1_001))
    share.expect(TypeId(1), 1_000)
    order = tenants_of(share.grant(2_000, always, 0))
    assert all(order.count(tenant) == 2 for tenant in (1, 500, 1_000))


# ---- shares


def test_jobs_of_two_minutes_believed_to_be_short_take_no_more_than_their_share() -> None:
    world = {
        1: Load(terms=Entitlement(weight=100), run_us=(120 * SECOND,), believed_us=300_000),
        2: Load(terms=Entitlement(weight=100), run_us=(300_000,)),
        3: Load(terms=Entitlement(weight=10), run_us=(300_000,)),
    }
    sim = Simulation(50, world)
    for second in range(20, 241, 20):
        span = ((second - 20) * SECOND, second * SECOND)
        sim.run(second * SECOND)
        fair = 50 * 100 / 210
        for tenant in (1, 2):
            assert sim.share_of(tenant, *span) * 50 == pytest.approx(fair, rel=0.15)
        assert sim.share_of(3, *span) * 50 == pytest.approx(fair / 10, abs=1)  # whole slots
        assert sim.share_of(3) * 50 == pytest.approx(fair / 10, rel=0.15)


@pytest.mark.parametrize("factor", [0.001, 0.01, 0.1, 10, 100])
def test_estimates_wrong_by_any_factor_shift_shares_by_less_than_15_percent(factor: float) -> None:
    world = {
        1: Load(
            terms=Entitlement(weight=100), run_us=(SECOND,), believed_us=round(factor * SECOND)
        ),
        2: Load(terms=Entitlement(weight=100), run_us=(SECOND,), believed_us=SECOND),
        3: Load(terms=Entitlement(weight=50), run_us=(SECOND,), believed_us=SECOND),
    }
    sim = Simulation(50, world).run(60 * SECOND)
    assert share_errors(sim, 0.15, (0, 60 * SECOND)) == []


def test_jobs_of_34_seconds_and_of_1_second_get_equal_slot_time() -> None:
    sim = Simulation(50, {1: Load(run_us=(34 * SECOND,)), 2: Load(run_us=(SECOND,))})
    sim.run(600 * SECOND)
    assert sim.share_of(1) == pytest.approx(0.5, abs=0.03)
    assert sim.share_of(1, 300 * SECOND) == pytest.approx(0.5, abs=0.03)


def test_a_tenant_back_from_idling_takes_its_share_and_no_more() -> None:
    sim = Simulation(20, {1: Load(), 2: Load()})
    sim.at(5 * SECOND, lambda: sim.sleep(1))
    sim.at(45 * SECOND, lambda: sim.wake(1))
    sim.run(65 * SECOND)
    assert hoarded(sim, 1, 45 * SECOND) == []
    assert sim.share_of(1, 45 * SECOND, 65 * SECOND) > 0.45


def test_jain_index_of_a_hundred_tenants_over_a_minute() -> None:
    runs = (80_000, 300_000, 900_000, 2_500_000)
    world = {n: Load(run_us=(runs[n % 4],)) for n in range(1, 101)}
    sim = Simulation(200, world).run(60 * SECOND)
    received = [sim.received_us(tenant) for tenant in world]
    assert sum(received) ** 2 / (100 * sum(each**2 for each in received)) >= 0.98


def test_a_new_weight_acts_on_the_backlog_already_queued() -> None:
    sim = Simulation(20, {1: Load(), 2: Load()})
    sim.at(10 * SECOND, lambda: sim.set_entitlement(1, Entitlement(weight=90)))
    sim.run(40 * SECOND)
    assert sim.share_of(1, 0, 10 * SECOND) == pytest.approx(0.5, abs=0.05)
    assert sim.share_of(1, 15 * SECOND, 40 * SECOND) == pytest.approx(0.9, abs=0.05)


def test_toggling_the_weight_sheds_no_debt() -> None:
    share = pool(10, 1, 2)
    _, running = share.grant(1, always, 0)[0]
    node = running.node
    share.set_entitlement(node.tenant, Entitlement(weight=100_000), 0)
    share.grant(6, always, 0)
    before = node.v
    share.set_entitlement(node.tenant, Entitlement(weight=1), 0)
    share.finish(running, 1)
    assert before - node.v <= running.charged


def test_idle_capacity_is_free_of_charge() -> None:
    """Alone for a minute on all slots; when another comes, both start equal."""
    sim = Simulation(10, {1: Load(), 2: Load(from_us=60 * SECOND)}).run(80 * SECOND)
    assert sim.share_of(1, 0, 60 * SECOND) == 1
    assert sim.share_of(1, 62 * SECOND, 80 * SECOND) == pytest.approx(0.5, abs=0.06)


def test_debt_is_forgiven_beyond_its_limit() -> None:
    settings = ShareSettings(free_share=0, debt_max_us=30 * SECOND)
    share = pool(10, 1, settings=settings)
    node = share._competitors.node(TenantId(1))
    share.sleep(TenantId(1), 0)
    node.raise_to(node.v + 10**9 * node.stride)
    share.wake(TenantId(1), 0)
    assert share.standings.standing(TenantId(1), 0).debt_us == 10 * 30 * SECOND


# ---- the conversation with the dispatcher


def test_no_capacity_and_no_free_slots_grant_nothing() -> None:
    assert pool(0, 1).grant(0, always, 0) == []
    assert pool(5).grant(5, always, 0) == []


def test_a_free_slot_is_used_even_when_dead_workers_still_count_as_busy() -> None:
    share = pool(10, 1)
    share.grant(10, always, 0)
    share.set_capacity(5, SECOND)
    assert len(share.grant(1, always, SECOND)) == 1


def test_a_tenant_without_a_job_for_this_worker_keeps_its_turn() -> None:
    share = pool(10, 1, 2)
    picky: Callable[[int], SimJob | None] = lambda t: always(t) if t == 2 else None  # noqa: E731
    assert tenants_of(share.grant(3, picky, 0)) == [2, 2, 2]
    assert share.grant(3, never, 0) == []
    assert tenants_of(share.grant(3, always, 0)) == [1, 1, 1]


def test_sleeping_inside_take_ends_the_tenants_turn() -> None:
    share = pool(10, 1, 2)

    def last_one(tenant: int) -> SimJob:
        share.sleep(TenantId(tenant), 0)
        return always(tenant)

    assert sorted(tenants_of(share.grant(9, last_one, 0))) == [1, 2]
    assert share.grant(9, always, 0) == []


def test_a_tenants_own_workers_cost_it_nothing_and_take_nothing_from_the_pool() -> None:
    share = pool(10, 1, 2)
    own = share.grant_own(TenantId(1), 5, always, 0)
    assert tenants_of(own) == [1] * 5
    assert sorted(tenants_of(share.grant(10, always, 0))) == [1] * 5 + [2] * 5
    for _, running in own:
        share.finish(running, SECOND)
    assert share.standings.running(TenantId(1)) == 5
    assert share.standings.standing(TenantId(1), SECOND).received_us == 10 * SECOND


def test_a_tenants_own_workers_teach_nobody_how_long_a_type_runs() -> None:
    share = pool(10, 1)
    estimate = share._estimates.of(TypeId(always(1).type))
    share.finish(share.grant_own(TenantId(1), 1, always, 0)[0][1], 600 * SECOND)
    assert estimate.guessed
    share.finish(share.grant(1, always, 0)[0][1], 600 * SECOND)
    assert not estimate.guessed


def test_finishing_twice_changes_nothing() -> None:
    share = pool(10, 1)
    running = share.grant(1, always, 0)[0][1]
    share.finish(running, SECOND)
    share.finish(running, 9 * SECOND)
    assert share.standings.running(TenantId(1)) == 0
    assert share.standings.standing(TenantId(1), 9 * SECOND).received_us == SECOND


def test_nodes_without_work_or_debt_are_forgotten_but_not_what_they_received() -> None:
    world = {n: Load(jobs=3) for n in range(1, 201)}
    sim = Simulation(50, world).run(20 * SECOND)
    assert sim.share.standings.pool().nodes == 200
    for tick in range(10):  # some at a time
        sim.share.tick(sim.now_us + tick * SECOND // 10)
    assert sim.share.standings.pool().nodes == 0
    assert sim.share.standings.standing(TenantId(7), sim.now_us).received_us == 3 * SECOND // 2


def test_a_restored_debtor_waits_and_unknown_tenants_are_spread_out() -> None:
    sim = Simulation(20, {1: Load(run_us=(60 * SECOND,), believed_us=1000), 2: Load()}, LOOSE)
    sim.run(20 * SECOND)
    rows = sim.share.checkpoint(sim.now_us)
    assert sim.share.checkpoint(sim.now_us) == []
    heir = PoolShare(PLAIN)
    heir.set_capacity(20, 0)
    heir.restore(rows, 0)
    for tenant in (1, 2, 3, 4, 5):
        heir.wake(TenantId(tenant), 0)
    assert heir.standings.standing(TenantId(1), 0).debt_us > SECOND
    assert len({heir._competitors.node(TenantId(n)).v >> 32 for n in (3, 4, 5)}) == 3
    assert 1 not in tenants_of(heir.grant(8, always, 0))


def test_tenants_outside_the_range_are_refused() -> None:
    with pytest.raises(ValueError, match="a tenant is a number"):
        PoolShare(PLAIN).wake(TenantId(0), 0)
    with pytest.raises(ValueError, match="group"):
        Entitlement(group="gold")
    with pytest.raises(ValueError, match="weight"):
        Entitlement(weight=0)


# ---- cost


def seconds_per_job(tenants: int, batch: int = 50, rounds: int = 80) -> float:
    """The cost of one grant and one finish, in the quieter rounds of a noisy machine."""
    share = pool(200, *range(1, tenants + 1))
    in_flight = [running for _, running in share.grant(200, always, 0)]
    spent = []
    for step in range(1, rounds + 1):
        done, in_flight = in_flight[:batch], in_flight[batch:]
        started = perf_counter()
        for running in done:
            share.finish(running, step * 1000)
        granted = share.grant(batch, always, step * 1000)
        spent.append(perf_counter() - started)
        in_flight += [running for _, running in granted]
    return quantiles(spent, n=10)[0] / batch


def test_a_decision_among_110_000_tenants_costs_at_most_twice_one_among_1_000() -> None:
    pairs = [(seconds_per_job(1_000), seconds_per_job(110_000)) for _ in range(3)]
    assert min(many / few for few, many in pairs) <= 2
