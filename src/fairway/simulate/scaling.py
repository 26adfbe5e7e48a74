"""How many workers a simulated pool has: as many as at the start, or what the autoscaler wants.

Looks every few seconds at the same facts that servers look at, asks `core/autoscale`, and acts as
its actuators do: a worker takes its time to start, closed ones get no jobs, idle ones go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from fairway.core.autoscale.facts import PoolFacts, ScaleMemory, ScaleSettings, WorkerLoad
from fairway.core.autoscale.policy import decide
from fairway.core.autoscale.rules import rules_of
from fairway.core.backlog.counts import Survey
from fairway.core.ids import PoolId
from fairway.core.pools import Pool
from fairway.simulate.simulation import Simulation
from fairway.simulate.virtual_time import SECOND_US
from fairway.simulate.workers import SimulatedWorker

LOOK_US = 5 * SECOND_US
WORKERS_MAX = 10_000
MS_A_SECOND = 1000


class Sight(NamedTuple):
    """A pool at one moment, for the curves."""

    at_seconds: float
    workers: int
    slots: int
    busy: int
    waiting: int


class Policy(Protocol):
    def wanted(self, pool: Pool, facts: PoolFacts, now_ms: int) -> int: ...
    def closed(self, pool: Pool) -> frozenset[str]: ...
    def may_go(self, pool: Pool) -> tuple[str, ...]: ...


class FixedFleet:
    """What dies is replaced."""

    def __init__(self, workers: Mapping[PoolId, int]) -> None:
        self._workers = workers

    def wanted(self, pool: Pool, facts: PoolFacts, now_ms: int) -> int:
        return self._workers[pool.number]

    def closed(self, pool: Pool) -> frozenset[str]:
        return frozenset()

    def may_go(self, pool: Pool) -> tuple[str, ...]:
        return ()


class Autoscaled:
    """By the platform's own policy."""

    def __init__(self, workers: Mapping[PoolId, int]) -> None:
        """What there is at the start is what operators keep at least."""
        self._memory = {pool: ScaleMemory(wanted=count) for pool, count in workers.items()}
        self._settings = {
            pool: ScaleSettings(mode="on", minimum_workers=count, maximum_workers=WORKERS_MAX)
            for pool, count in workers.items()
        }
        self._closed: dict[PoolId, frozenset[str]] = {}
        self._may_go: dict[PoolId, tuple[str, ...]] = {}
        self.decisions: list[tuple[int, str, int, str]] = []  # when, pool, workers, code

    def wanted(self, pool: Pool, facts: PoolFacts, now_ms: int) -> int:
        number = pool.number
        decision = decide(
            facts, self._settings[number], rules_of(pool), self._memory[number], now_ms
        )
        if decision.code is not None:
            self.decisions.append((now_ms, pool.name, decision.wanted, decision.code))
        self._memory[number] = decision.memory
        self._closed[number] = frozenset(decision.closed)
        self._may_go[number] = decision.may_go
        return decision.wanted

    def closed(self, pool: Pool) -> frozenset[str]:
        return self._closed.get(pool.number, frozenset())

    def may_go(self, pool: Pool) -> tuple[str, ...]:
        return self._may_go.get(pool.number, ())


class Scaling:
    """Keeps each pool at what a policy wants; workers of one pool each, with its usual slots."""

    def __init__(
        self, simulation: Simulation, pools: list[Pool], policy: Policy, start: Mapping[PoolId, int]
    ) -> None:
        self._simulation = simulation
        self._pools = pools
        self._policy = policy
        self._starting = dict.fromkeys(start, 0)
        self.sights: dict[PoolId, list[Sight]] = {pool: [] for pool in start}
        for pool in pools:
            for _ in range(start[pool.number]):
                simulation.workers.start({pool.number: pool.slots_default})
        simulation.time.every(LOOK_US, self._look)

    def _look(self) -> None:
        survey = Survey()
        for _ in self._simulation.platform.dispatcher.windows().surveying(survey):
            pass
        for pool in self._pools:
            self._look_at(pool, survey)

    def _look_at(self, pool: Pool, survey: Survey) -> None:
        workers = self._simulation.workers.alive(pool.number)
        facts = self._facts(pool, workers, survey)
        now_ms = self._simulation.time.unix_ms()
        wanted = self._policy.wanted(pool, facts, now_ms)
        self._close(workers, self._policy.closed(pool))
        for name in self._policy.may_go(pool):
            worker = self._simulation.workers.named(name)
            if worker is not None and not worker.busy:
                self._simulation.workers.end(worker)
        there = len(self._simulation.workers.alive(pool.number)) + self._starting[pool.number]
        for _ in range(wanted - there):
            self._start(pool)
        self.sights[pool.number].append(
            Sight(
                self._simulation.time.seconds,
                facts.workers,
                facts.slots,
                facts.busy_slots,
                facts.backlog_jobs,
            )
        )

    def _close(self, workers: list[SimulatedWorker], closed: frozenset[str]) -> None:
        for worker in workers:
            if worker.name in closed and not worker.session.draining:
                self._simulation.workers.close(worker)
            elif worker.session.draining and worker.name not in closed:
                self._simulation.workers.open(worker)

    def _start(self, pool: Pool) -> None:
        self._starting[pool.number] += 1

        def ready() -> None:
            self._starting[pool.number] -= 1
            self._simulation.workers.start({pool.number: pool.slots_default})

        self._simulation.time.after(self._simulation.overheads.worker_start_us, ready)

    def _facts(self, pool: Pool, workers: list[SimulatedWorker], survey: Survey) -> PoolFacts:
        now_us = self._simulation.time.now_us()
        loads = [
            WorkerLoad(
                one.name,
                one.busy,
                0 if one.busy else (now_us - one.idle_since_us) // 1000,
                one.session.draining,
            )
            for one in workers
        ]
        jobs, slot_seconds, age = self._backlog(pool, survey)
        return PoolFacts(
            workers=len(workers),
            slots=len(workers) * pool.slots_default,
            busy_slots=sum(one.busy for one in loads),
            busy_workers=sum(one.busy > 0 for one in loads),
            backlog_jobs=jobs,
            backlog_slot_seconds=slot_seconds,
            oldest_runnable_age_seconds=age,
            spare=tuple(loads),
            slots_of_new_worker=pool.slots_default,
        )

    def _backlog(self, pool: Pool, survey: Survey) -> tuple[int, float, float]:
        """What could start now: jobs, slot-seconds by the scheduler's own estimates, and age."""
        number = pool.number
        held = sum(count for (where, _), count in survey.held.items() if where == number)
        jobs = max(survey.depth[number] - held - survey.parked[number], 0)
        if not jobs:
            return 0, 0.0, 0.0
        share = self._simulation.platform.dispatcher.share_of(number)
        known = [share.estimate(kind.type) for kind in self._simulation.kinds]
        runs = sum(one.runs for one in known)
        mean_us = sum(one.mean_us * one.runs for one in known) / max(runs, 1)
        age_ms = self._simulation.time.unix_ms() - survey.oldest_ms[number]
        return jobs, jobs * mean_us / SECOND_US, max(age_ms / MS_A_SECOND, 0.0)
