"""Simulated platforms: nothing lost, slots never overbooked, the same seed the same lives."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.source import ROOT
from tests.properties import tried

from fairway.core.ids import TenantId, TypeId
from fairway.core.pools import LONG, MEDIUM, SHORT
from fairway.simulate.contention import contended
from fairway.simulate.simulation import Life, Setup, Simulation
from fairway.simulate.virtual_time import SECOND_US
from fairway.simulate.work import TIERS, Arrival, Kind, Overheads, tenant_of

WORK = Kind(TypeId(1), "work", SHORT.number)
CALL = Kind(TypeId(2), "call", SHORT.number, dependency="payments")
BROKEN = Kind(TypeId(3), "broken", SHORT.number, breaks=True)
STEADY = Kind(TypeId(4), "steady", MEDIUM.number)
KINDS = (WORK, CALL, BROKEN, STEADY)
STEPS, STEP_SECONDS = 200, 20.0


def simulated(tenants: int = 3) -> tuple[Simulation, list[Life]]:
    lives: list[Life] = []
    named = [tenant_of(n + 1, f"t{n}") for n in range(tenants)]
    return Simulation(Setup(tenants=named, kinds=KINDS), lives.append), lives


def run_to_the_end(simulation: Simulation) -> None:
    """Until nothing is left, or for an hour."""
    for step in range(1, STEPS):
        simulation.run(40.0 + step * STEP_SECONDS)
        if not simulation.unfinished():
            return


def job(at: float, kind: Kind = WORK, seconds: float = 0.1, tenant: int = 1) -> Arrival:
    at_us, run_us = round(at * SECOND_US), round(seconds * SECOND_US)
    return Arrival(at_us, TenantId(tenant), kind, run_us)


arrivals = st.lists(
    st.builds(
        Arrival,
        at_us=st.integers(0, 20 * SECOND_US),
        tenant=st.sampled_from([TenantId(1), TenantId(2), TenantId(3)]),
        kind=st.sampled_from(KINDS),
        run_us=st.integers(1_000, 8 * SECOND_US),
        due_us=st.sampled_from([0, 0, 25 * SECOND_US]),
        fails=st.booleans(),
    ),
    min_size=1,
    max_size=40,
)
deaths = st.lists(st.integers(0, 30 * SECOND_US), max_size=3)


@given(arrivals, deaths)
@tried(15)
def test_every_job_ends_once_whatever_dies_and_breaks(
    work: list[Arrival], killed: list[int]
) -> None:
    simulation, lives = simulated()
    for _ in range(2):
        simulation.workers.start({SHORT.number: 2, MEDIUM.number: 1})
    for moment in killed:
        simulation.time.at(moment, lambda: _kill_and_replace(simulation))
    simulation.breaks_down("payments", 3 * SECOND_US, 12 * SECOND_US)
    simulation.release_breaks(5 * SECOND_US, 15 * SECOND_US)
    simulation.feed(sorted(work, key=lambda one: one.at_us))
    run_to_the_end(simulation)
    assert simulation.unfinished() == []
    assert len(lives) == len(work) == simulation.accepted
    assert simulation.platform.waiting == simulation.platform.later == 0
    assert {life.state for life in lives} <= {"succeeded", "dead"}
    assert all(life.wait_us >= 0 for life in lives)


def _kill_and_replace(simulation: Simulation) -> None:
    for worker in simulation.workers.alive(SHORT.number)[:1]:
        simulation.workers.kill(worker)
    simulation.workers.start_later({SHORT.number: 2, MEDIUM.number: 1})


@given(arrivals)
@tried(15)
def test_slots_are_never_overbooked_and_the_same_work_has_the_same_lives(
    work: list[Arrival],
) -> None:
    found = []
    for _ in range(2):
        simulation, lives = simulated()
        simulation.workers.start({SHORT.number: 3, MEDIUM.number: 2})
        simulation.feed(sorted(work, key=lambda one: one.at_us))
        run_to_the_end(simulation)
        found.append([(one.started_us, one.finished_us, one.state) for one in lives])
    assert found[0] == found[1]
    first_runs = [one for one in lives if one.attempts == 1 and one.pool == SHORT.number]
    edges = [(one.started_us, 1) for one in first_runs]
    edges += [(one.started_us + one.arrival.run_us, -1) for one in first_runs]
    held = most = 0
    for _, step in sorted(edges):
        held += step
        most = max(most, held)
    assert most <= 3


def test_jobs_of_one_tenant_start_in_order_and_wait_for_a_slot() -> None:
    simulation, lives = simulated()
    simulation.workers.start({SHORT.number: 1})
    simulation.feed([job(0, seconds=1.0), job(0.1, seconds=1.0), job(0.2, seconds=1.0)])
    simulation.run(10)
    waits = [life.wait_us / SECOND_US for life in lives]
    ways = Overheads()
    way = (ways.commit_us + ways.reply_us) / SECOND_US
    assert waits == pytest.approx([way, 0.9 + way, 1.8 + way], abs=0.02)


def test_a_worker_that_dies_costs_a_delivery_and_no_attempt() -> None:
    simulation, lives = simulated()
    first = simulation.workers.start({SHORT.number: 1})
    simulation.feed([job(0, seconds=5.0)])
    simulation.time.at(2 * SECOND_US, lambda: simulation.workers.kill(first))
    simulation.time.at(3 * SECOND_US, lambda: _second(simulation))
    simulation.run(60)
    (life,) = lives
    assert (life.state, life.attempts, simulation.deliveries_lost) == ("succeeded", 1, 1)
    # silent for as long as its pool allows, then run again from the start
    assert life.finished_us / SECOND_US == pytest.approx(2 + SHORT.lease_seconds + 5, abs=0.1)


def _second(simulation: Simulation) -> None:
    simulation.workers.start({SHORT.number: 1})


def test_an_outage_opens_circuits_parks_jobs_and_ends() -> None:
    simulation, lives = simulated()
    simulation.workers.start({SHORT.number: 10})
    simulation.breaks_down("payments", 10 * SECOND_US, 70 * SECOND_US)
    simulation.feed([job(n * 0.1, CALL) for n in range(1_200)])
    simulation.run(600)
    assert [life.state for life in lives] == ["succeeded"] * 1_200
    assert simulation.platform.most_circuits == 1
    assert simulation.amplification("payments") < 1.1


def test_a_type_that_mostly_fails_is_quarantined() -> None:
    simulation, lives = simulated()
    simulation.workers.start({SHORT.number: 10})
    simulation.release_breaks(0, 10_000 * SECOND_US)
    simulation.feed([job(n * 0.1, BROKEN) for n in range(150)])
    run_to_the_end(simulation)
    assert {life.state for life in lives} == {"dead"}
    assert sum(life.attempts for life in lives) / len(lives) < 2.5


def test_the_clock_moves_a_type_that_takes_too_long_for_its_pool() -> None:
    simulation, _ = simulated()
    simulation.workers.start({SHORT.number: 10, MEDIUM.number: 10})
    simulation.feed([job(n * 0.5, WORK, seconds=3.0) for n in range(100)])
    simulation.run(60)
    ((_, type_id, pool),) = simulation.types_moved()
    assert (type_id, pool) == (WORK.type, MEDIUM.number)


def test_who_may_run_little_at_once_waits_and_others_do_not() -> None:
    lives: list[Life] = []
    tenants = [tenant_of(1, "capped", cap=1), tenant_of(2, "free")]
    simulation = Simulation(Setup(tenants=tenants, kinds=KINDS), lives.append)
    simulation.workers.start({SHORT.number: 10})
    simulation.feed([job(0, tenant=1 + n % 2) for n in range(20)])
    simulation.run(30)
    waits = {
        tenant: max(life.wait_us for life in lives if life.arrival.tenant == tenant)
        for tenant in (1, 2)
    }
    assert waits[1] > 0.8 * SECOND_US
    assert waits[2] < 0.2 * SECOND_US


def test_shares_under_overload_are_those_of_the_weights() -> None:
    found = contended(tenants=12, slots=40, seconds=10.0)
    assert found.jain > 0.98
    assert found.error_max < 0.15


def test_tiers_are_those_that_a_platform_is_founded_with() -> None:
    schema = (ROOT / "src/fairway/store/schema.sql").read_text("utf-8")
    rows = re.findall(r"\('(\w+)', +(\d+), '(\w*)', +(\d+), +(\d+), +(\d+), (\d+)\)", schema)
    told = {
        row[0]: (int(row[1]), row[2], int(row[3]), int(row[4]), int(row[5]), int(row[6]))
        for row in rows
    }
    assert told == {
        name: (t.weight, t.fair_group, t.floor_share, t.rate_per_second, t.burst, t.depth_limit)
        for name, t in TIERS.items()
    }
    assert LONG.pickup_target_seconds == 60
