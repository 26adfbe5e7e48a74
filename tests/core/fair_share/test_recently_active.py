"""The door: the last slots of a pool are not lent while somebody comes and goes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.core.fair_checks import watch_work_conserving
from tests.core.fair_simulation import ENDLESS, PLAIN, SECOND, Load, Simulation
from tests.core.fair_worlds import loads, slots
from tests.properties import tried

from fairway.core.fair_share.fairness import Entitlement, ShareSettings

FLOOD, VISITOR = 1, 2
DOOR = replace(PLAIN, headroom_share=100)
SHUT = replace(PLAIN, headroom_share=0)


def visited(settings: ShareSettings, visits_us: list[int], weight: int = 10) -> Simulation:
    """Twenty slots full of one tenant's jobs of 100 ms; another has one of 10 ms now and then."""
    world = {
        FLOOD: Load(run_us=(100_000,)),
        VISITOR: Load(run_us=(10_000,), jobs=1, terms=Entitlement(weight=weight)),
    }
    sim = Simulation(20, world, settings)
    for moment_us in visits_us:
        sim.at(moment_us, lambda: sim.wake(VISITOR, jobs=1))
    return sim


def waits_us(sim: Simulation, visits_us: list[int]) -> list[int]:
    started = sorted(run.start_us for run in sim.runs if run.tenant == VISITOR and run.start_us)
    return [start - came for start, came in zip(started, visits_us, strict=True)]


# Further apart than a visit is short, so that each one finds the door as the last one left it.
visits = st.lists(st.integers(20_000, 2 * SECOND), min_size=1, max_size=20).map(
    lambda gaps: [SECOND + sum(gaps[: n + 1]) for n in range(len(gaps))]
)


@tried(30)
@given(visits, st.integers(1, 100))
def test_who_comes_and_goes_never_waits_for_a_neighbour(visits_us: list[int], weight: int) -> None:
    sim = visited(DOOR, visits_us, weight).run(visits_us[-1] + SECOND)
    assert waits_us(sim, visits_us) == [0] * len(visits_us)


def test_without_a_door_it_waits() -> None:
    """The same check on a scheduler without the rule: it must notice."""
    visits_us = [SECOND + n * 130_000 for n in range(1, 20)]
    assert max(waits_us(visited(SHUT, visits_us).run(4 * SECOND), visits_us)) > 10_000


@tried(30)
@given(visits)
def test_a_borrower_leaves_the_door_free_and_no_more_than_that(visits_us: list[int]) -> None:
    sim = visited(DOOR, visits_us)
    found: list[tuple[int, int]] = []
    sim.watchers.append(lambda sim: found.append((sim.busy[FLOOD], sum(sim.busy.values()))))
    sim.run(SECOND)  # the flood took what it could before anybody else was known
    found.clear()
    sim.run(visits_us[-1] + SECOND)
    assert max(lent for lent, _ in found) == 18, "two of twenty slots are the door"
    assert min(busy for _, busy in found) == 18, "and all others are busy"


@tried(30)
@given(slots, loads(jobs=ENDLESS))
def test_nobody_away_and_the_door_is_nothing(slots: int, loads: dict[int, Load]) -> None:
    """P7 holds to the letter, and every choice is the same."""
    with_door = Simulation(slots, loads, replace(PLAIN, headroom_share=300))
    with_door.watchers.append(watch_work_conserving)
    with_door.run(20 * SECOND)
    assert with_door.violations == []
    assert with_door.schedule() == Simulation(slots, loads, PLAIN).run(20 * SECOND).schedule()


def test_a_visitor_that_stays_away_is_no_longer_expected() -> None:
    sim = visited(DOOR, [2 * SECOND]).run(30 * SECOND)
    assert sim.busy[FLOOD] == 20


def test_the_free_group_does_not_borrow_the_door_either() -> None:
    settings = ShareSettings(headroom_share=100, debt_max_us=None)
    free = {n: Load(run_us=(100_000,), terms=Entitlement(group="free")) for n in range(10, 200)}
    world = free | {VISITOR: Load(run_us=(10_000,), jobs=1)}
    visits_us = [2 * SECOND + n * 137_000 for n in range(10)]
    sim = Simulation(20, world, settings)
    for moment_us in visits_us:
        sim.at(moment_us, lambda: sim.wake(VISITOR, jobs=1))
    sim.run(6 * SECOND)
    assert waits_us(sim, visits_us) == [0] * len(visits_us)
