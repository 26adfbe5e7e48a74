"""The design's fleet for an hour: a wave, bursts, deaths, an outage, a broken release.

It simulates one shard of many, with its part of the tenants, jobs and slots. Shards share nothing;
a fleet that is cut into parts waits longer than one that shares its slots, so what is found here
for a part is found on the careful side for the whole.
"""

from __future__ import annotations

import math
import random
import time as processor
from collections.abc import Callable
from dataclasses import dataclass

from fairway.core.failure.circuits import CircuitSettings
from fairway.core.ids import PoolId
from fairway.core.pools import LONG, MEDIUM, SHORT, Pool
from fairway.simulate.design import DAY_SECONDS, KINDS, PAYMENTS, Design, arrivals, tenants_of
from fairway.simulate.scaling import Autoscaled, FixedFleet, Scaling, Sight
from fairway.simulate.simulation import Life, Setup, Simulation
from fairway.simulate.tally import Tally
from fairway.simulate.virtual_time import SECOND_US

POOLS = [SHORT, MEDIUM, LONG]
#: Slots at the start over those in use in the mean. Few slots need more room beside the mean.
START_ROOM = {SHORT.number: 2.5, MEDIUM.number: 2.8, LONG.number: 1.5}
DEATHS_A_DAY = 1.0  # of each worker
DEATHS_EVERY_US = 10 * SECOND_US
TENTH_DIES_AT = 0.75  # of the time: a tenth of all workers, at once
OUTAGE = (0.25, 0.4)  # parts of the time
BROKEN = (0.5, 0.65)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """What was found."""

    design: Design
    tally: Tally
    tenants: int
    accepted: int
    runs: int
    events: int
    lost_leases: int
    amplification: float  # calls of what was down over calls that were needed
    circuits_most: int
    moved: list[tuple[float, str, str]]  # when, which type, to which pool
    unfinished: int  # when the time was over
    unstarted: int  # of those, and not to run later
    sights: dict[PoolId, list[Sight]]
    decisions: list[tuple[int, str, int, str]]
    took_seconds: float  # of processor time, in one process: others may keep the machine busy

    def slot_hours(self, pool: Pool) -> float:
        """Of the part that was simulated, a mean over the time."""
        seen = self.sights[pool.number]
        return sum(one.slots for one in seen) / max(len(seen), 1) * self.design.seconds / 3600

    def utilisation(self, pool: Pool) -> float:
        seen = self.sights[pool.number]
        return sum(one.busy for one in seen) / max(sum(one.slots for one in seen), 1)


def simulate_hour(
    design: Design, *, autoscale: bool = True, on_minute: Callable[[], None] = lambda: None
) -> Hour:
    """`on_minute` is told of every minute that has gone by."""
    began = processor.process_time()
    tenants, loads = tenants_of(design)
    tally = Tally({tenant.id: tenant.tier for tenant in tenants}, _held_by_outage(design))
    simulation = Simulation(Setup(tenants=tenants, kinds=KINDS, seed=design.seed), tally.add)
    start = {
        pool.number: max(
            math.ceil(design.busy_slots(pool) * START_ROOM[pool.number] / pool.slots_default), 2
        )
        for pool in POOLS
    }
    policy = Autoscaled(start) if autoscale else FixedFleet(start)
    scaling = Scaling(simulation, POOLS, policy, start)
    _go_wrong(simulation, design)
    simulation.feed(arrivals(design, tenants, loads))
    events = 0
    for minute in range(math.ceil(design.seconds / 60)):
        events += simulation.run(min((minute + 1) * 60.0, design.seconds))
        on_minute()
    left = simulation.unfinished()
    for life in left:
        tally.under_way(life)
    names = {kind.type: kind.name for kind in KINDS}
    pools = {pool.number: pool.name for pool in POOLS}
    return Hour(
        design=design,
        tally=tally,
        tenants=len(tenants),
        accepted=simulation.accepted,
        runs=simulation.runs,
        events=events,
        lost_leases=simulation.deliveries_lost,
        amplification=simulation.amplification(PAYMENTS),
        circuits_most=simulation.platform.most_circuits,
        moved=[(at, names[type_id], pools[to]) for at, type_id, to in simulation.types_moved()],
        unfinished=len(left),
        unstarted=sum(life.started_us < 0 and not life.arrival.due_us for life in left),
        sights=scaling.sights,
        decisions=policy.decisions if isinstance(policy, Autoscaled) else [],
        took_seconds=processor.process_time() - began,
    )


def _held_by_outage(design: Design) -> Callable[[Life], bool]:
    """Who leans on the provider may be parked until a probe finds it back."""
    start_us, end_us = (round(part * design.seconds * SECOND_US) for part in OUTAGE)
    end_us += CircuitSettings().rest_max_us

    def is_held(life: Life) -> bool:
        since_us = max(life.accepted_us, life.arrival.due_us)
        return bool(life.arrival.kind.dependency) and start_us <= since_us < end_us

    return is_held


def _go_wrong(simulation: Simulation, design: Design) -> None:
    def moment_us(part: float) -> int:
        return round(part * design.seconds * SECOND_US)

    dice = random.Random(f"{design.seed}/deaths")
    simulation.breaks_down(PAYMENTS, moment_us(OUTAGE[0]), moment_us(OUTAGE[1]))
    simulation.release_breaks(moment_us(BROKEN[0]), moment_us(BROKEN[1]))
    simulation.time.at(moment_us(TENTH_DIES_AT), lambda: _a_tenth_dies(simulation, dice))
    simulation.time.every(DEATHS_EVERY_US, lambda: _some_die(simulation, dice))


def _a_tenth_dies(simulation: Simulation, dice: random.Random) -> None:
    for pool in POOLS:
        workers = simulation.workers.alive(pool.number)
        for worker in dice.sample(workers, round(len(workers) / 10)):
            simulation.workers.kill(worker)


def _some_die(simulation: Simulation, dice: random.Random) -> None:
    for pool in POOLS:
        workers = simulation.workers.alive(pool.number)
        chance = len(workers) * DEATHS_A_DAY * DEATHS_EVERY_US / SECOND_US / DAY_SECONDS
        if workers and dice.random() < chance:
            simulation.workers.kill(dice.choice(workers))
