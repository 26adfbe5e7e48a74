"""A scenario of the lab in virtual time: the same file, the same planned arrivals, no processes.

What it tells are the same stories that the lab reads from a real platform's record, so figures,
expectations and page are the lab's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from fairway import FairwayError
from fairway.core.ids import PoolId, TypeId
from fairway.core.pools import BUILT_IN, BY_NAME
from fairway.core.tenant import Tenant
from fairway.lab.experiments.fleet import arrivals as planned_arrivals
from fairway.lab.experiments.stage import Arrival as Planned
from fairway.lab.measure.figures import Story
from fairway.lab.scenario import Group, Happening, Scenario
from fairway.simulate.simulation import Life, Setup, Simulation
from fairway.simulate.virtual_time import SECOND_US
from fairway.simulate.work import Arrival, Kind, tenant_of

CALLS, POISON = "lab.call", "lab.poison"
DEPENDENCY = "payments"
STEP_SECONDS = 1.0
LEASES = "FAIRWAY_LEASE_SECONDS"


class Play:
    """One scenario from its first job to its last."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self._scenario = scenario
        self._tenants = _tenants(scenario)
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._places: dict[int, tuple[str, int]] = {
            tenant.id: place for place, tenant in self._tenants.items()
        }
        planned = planned_arrivals(scenario, seed)
        work = [self._arrival(one) for one in planned]
        work += [one for each in scenario.happenings for one in self._burst(each)]
        self._work = sorted(work, key=lambda one: one.at_us)
        self._lives: list[Life] = []
        setup = Setup(
            tenants=list(self._tenants.values()),
            kinds=list(self._kinds.values()),
            seed=seed,
            lease_seconds=_lease_seconds(scenario.settings),
        )
        self._simulation = Simulation(setup, self._lives.append)
        self._slots = {_pool(name): count for name, count in scenario.workers.slots.items()}

    def run(self) -> list[Story]:
        simulation, scenario = self._simulation, self._scenario
        for _ in range(scenario.workers.count):
            simulation.workers.start(self._slots)
        for one in scenario.happenings:
            self._happens(one)
        end_us = round((scenario.seconds + scenario.drain_seconds) * SECOND_US)
        simulation.release_breaks(0, end_us)
        simulation.feed(self._work)
        at = scenario.seconds
        simulation.run(at)
        while simulation.unfinished() and at < scenario.seconds + scenario.drain_seconds:
            at += STEP_SECONDS
            simulation.run(at)
        return [self._story(life) for life in (*self._lives, *simulation.unfinished())]

    def amplification(self) -> dict[str, float]:
        """As the lab counts it."""
        return {f"{DEPENDENCY}/amplification": self._simulation.amplification(DEPENDENCY)}

    # -- work ----------------------------------------------------------------------------------

    def _arrival(self, one: Planned, due_us: int = 0) -> Arrival:
        at_us, tenant = round(one.at * SECOND_US), self._tenants[one.group, one.tenant]
        kind = self._kind(one.kind.type, one.kind.pool)
        return Arrival(at_us, tenant.id, kind, round(one.kind.seconds * SECOND_US), due_us)

    def _burst(self, one: Happening) -> list[Arrival]:
        if one.what != "burst":
            return []
        group = next(group for group in self._scenario.tenants if group.name == one.group)
        found: list[Arrival] = []
        for number in range(group.count):
            planned = Planned(one.at, group.name, number, group.jobs[0])
            due_us = round(one.at * SECOND_US) if one.scheduled else 0
            arrival = self._arrival(planned, due_us)
            if one.scheduled:
                arrival = arrival._replace(at_us=0)
            found += [arrival] * (one.jobs // group.count)
        return found

    def _kind(self, type_name: str, pool: str) -> Kind:
        key = (type_name, pool)
        if key not in self._kinds:
            number = TypeId(len(self._kinds) + 1)
            dependency = DEPENDENCY if type_name == CALLS else ""
            kind = Kind(number, type_name, _pool(pool), dependency, type_name == POISON)
            self._kinds[key] = kind
        return self._kinds[key]

    # -- what happens ----------------------------------------------------------------------------

    def _happens(self, one: Happening) -> None:
        simulation, at_us = self._simulation, round(one.at * SECOND_US)
        match one.what:
            case "kill_worker":
                simulation.time.at(at_us, self._kill_first)
            case "start_worker":
                simulation.time.at(at_us, partial(self._start, self._slots))
            case "break":
                mended = [
                    other.at
                    for other in self._scenario.happenings
                    if other.what == "mend" and other.at > one.at
                ]
                until = min(mended, default=math.inf)
                until_us = round(min(until, 1e9) * SECOND_US)
                simulation.breaks_down(one.dependency, at_us, until_us)

    def _start(self, slots: Mapping[PoolId, int]) -> None:
        self._simulation.workers.start(slots)

    def _kill_first(self) -> None:
        pool = next(iter(self._slots))
        self._simulation.workers.kill(self._simulation.workers.alive(pool)[0])

    # -- afterwards ------------------------------------------------------------------------------

    def _story(self, life: Life) -> Story:
        arrival = life.arrival
        group, number = self._places[arrival.tenant]
        pool = next(pool.name for pool in BUILT_IN if pool.number == life.pool)
        since = max(life.accepted_us, arrival.due_us) / SECOND_US
        return Story(
            group,
            number,
            arrival.kind.name,
            pool,
            max(arrival.at_us, arrival.due_us) / SECOND_US,
            since,
            life.started_us / SECOND_US if life.started_us >= 0 else None,
            life.finished_us / SECOND_US if life.finished_us >= 0 else None,
            life.state or "running",
            life.attempts,
        )


def _tenants(scenario: Scenario) -> dict[tuple[str, int], Tenant]:
    found: dict[tuple[str, int], Tenant] = {}
    for group in scenario.tenants:
        for number in range(group.count):
            found[group.name, number] = _tenant(len(found) + 1, group, number)
    return found


def _tenant(number: int, group: Group, place: int) -> Tenant:
    own = {key: int(group.terms[key]) for key in ("weight", "cap") if key in group.terms}
    return tenant_of(number, f"{group.name}-{place}", group.terms.get("tier", "standard"), **own)


def _pool(name: str) -> PoolId:
    if name not in BY_NAME:
        raise FairwayError(f"A simulation knows the pools {', '.join(BY_NAME)}, and not {name!r}.")
    return BY_NAME[name].number


def _lease_seconds(settings: Mapping[str, str]) -> dict[PoolId, float]:
    pairs = [one.split("=") for one in settings.get(LEASES, "").split(",") if one]
    return {_pool(name): float(seconds) for name, seconds in pairs}
