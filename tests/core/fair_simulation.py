"""A pool in virtual time: tenants with loads, slots that run jobs, and the real scheduler.

The simulation plays dispatcher and workers at once and keeps every run, so that a property is a
plain function over what happened. It has no opinion about what is fair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from fairway.core.fair_share.fairness import Entitlement, PoolShare, Running, ShareSettings
from fairway.core.fair_share.queue import LENT, RESERVED
from fairway.core.ids import TenantId, TypeId

SECOND = 1_000_000
ENDLESS = 1 << 60
# Nothing of the free group's slice, no forgiving: what most properties speak about.
PLAIN = ShareSettings(free_share=0, debt_max_us=None)
LOOSE = replace(PLAIN, guard_share=1_000_000)  # no occupancy guard: virtual time alone decides


class SimJob(NamedTuple):
    tenant: int
    type: TypeId
    run_us: int
    timeout_ms: int | None


@dataclass(frozen=True, kw_only=True)
class Load:
    """What one tenant asks for; run times repeat in a cycle."""

    terms: Entitlement = field(default_factory=Entitlement)
    run_us: tuple[int, ...] = (SECOND // 2,)
    believed_us: int | None = None  # the scheduler's estimate at the start
    jobs: int = ENDLESS
    from_us: int = 0
    timeout_ms: int | None = None


@dataclass(slots=True)
class Run:
    tenant: int
    start_us: int
    run_us: int
    kind: int
    timeout_ms: int | None

    def overlap_us(self, from_us: int, until_us: int) -> int:
        return max(0, min(self.start_us + self.run_us, until_us) - max(self.start_us, from_us))


class Simulation:
    """One pool, from time zero."""

    def __init__(
        self,
        slots: int,
        loads: dict[int, Load],
        settings: ShareSettings = PLAIN,
        share: PoolShare | None = None,
    ) -> None:
        self.now_us = 0
        self.slots = slots
        self.loads = dict(loads)
        self.share = share or PoolShare(settings)
        self.runs: list[Run] = []
        self.violations: list[str] = []
        self.watchers: list[Callable[[Simulation], None]] = []
        self.single_steps = False  # ask for one job at a time instead of for all free slots
        self.busy: Counter[int] = Counter()
        self.in_flight: dict[int, tuple[Running, Run]] = {}
        self._left = {tenant: load.jobs for tenant, load in loads.items()}
        self._asleep: set[int] = set()
        self._given: Counter[int] = Counter()
        self._numbers = count()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self.share.set_capacity(slots, 0)
        for tenant in loads:
            self._introduce(tenant)

    def _introduce(self, tenant: int) -> None:
        load = self.loads[tenant]
        self.share.set_entitlement(TenantId(tenant), load.terms, 0)
        if load.believed_us is not None:
            self.share.expect(TypeId(tenant), load.believed_us)
        self.at(load.from_us, lambda: self.wake(tenant))

    # ---- what can happen

    def at(self, time_us: int, action: Callable[[], None]) -> None:
        heappush(self._events, (time_us, next(self._numbers), action))

    def wake(self, tenant: int, jobs: int | None = None) -> None:
        self._left[tenant] = self._left[tenant] if jobs is None else jobs
        self._asleep.discard(tenant)
        if self._left[tenant]:
            self.share.wake(TenantId(tenant), self.now_us)

    def sleep(self, tenant: int) -> None:
        self._asleep.add(tenant)
        self.share.sleep(TenantId(tenant), self.now_us)

    def set_slots(self, slots: int) -> None:
        self.slots = slots
        self.share.set_capacity(slots, self.now_us)

    def set_entitlement(self, tenant: int, terms: Entitlement) -> None:
        self.loads[tenant] = replace(self.loads[tenant], terms=terms)
        self.share.set_entitlement(TenantId(tenant), terms, self.now_us)

    def fail_over(self, rows: list[tuple[TenantId, int]], successor: PoolShare) -> None:
        """The owner is gone; the next one knows the rows, the terms and what the workers run."""
        self.share = successor
        for tenant, load in self.loads.items():
            successor.set_entitlement(TenantId(tenant), load.terms, self.now_us)
        successor.set_capacity(self.slots, self.now_us)
        successor.restore(rows, self.now_us)
        for number, (_, run) in self.in_flight.items():
            running = successor.adopt(
                TenantId(run.tenant), TypeId(run.tenant), run.start_us, self.now_us
            )
            self.in_flight[number] = (running, run)
        for tenant in self.loads:
            if self.waiting(tenant):
                successor.wake(TenantId(tenant), self.now_us)

    # ---- the world

    def run(self, until_us: int, tick_us: int = SECOND // 10) -> Simulation:
        next_tick_us = self.now_us
        while self._events and self._events[0][0] <= until_us:
            self.now_us = self._events[0][0]
            if self.now_us >= next_tick_us:
                self.share.tick(self.now_us)
                next_tick_us = self.now_us + tick_us
            while self._events and self._events[0][0] == self.now_us:
                heappop(self._events)[2]()
            self._grant()
            for watcher in self.watchers:
                watcher(self)
        self.now_us = until_us
        return self

    def _grant(self) -> None:
        free = self.slots - sum(self.busy.values())
        if not self.single_steps:
            self._ask(free)
            return
        for _ in range(free):
            if not self._ask(1):
                return

    def _ask(self, free: int) -> int:
        if free <= 0:
            return 0
        granted = self.share.grant(free, self._take, self.now_us, lend=self._lend)
        for job, running in granted:
            self._start(job, running)
        return len(granted)

    def _start(self, job: SimJob, running: Running) -> None:
        number = next(self._numbers)
        run = Run(job.tenant, self.now_us, job.run_us, running.kind, job.timeout_ms)
        self.runs.append(run)
        self.busy[job.tenant] += 1
        self.in_flight[number] = (running, run)
        self.at(self.now_us + job.run_us, lambda: self._finish(number))

    def _finish(self, number: int) -> None:
        running, run = self.in_flight.pop(number)
        self.busy[run.tenant] -= 1
        self.share.finish(running, self.now_us)

    def waiting(self, tenant: int) -> bool:
        return self._left[tenant] > 0 and tenant not in self._asleep

    def _take(self, tenant: int) -> SimJob | None:
        if not self.waiting(tenant):
            self.share.sleep(TenantId(tenant), self.now_us)
            return None
        load = self.loads[tenant]
        run_us = load.run_us[self._given[tenant] % len(load.run_us)]
        self._given[tenant] += 1
        self._left[tenant] -= 1
        if not self._left[tenant]:
            self.share.sleep(TenantId(tenant), self.now_us)
        return SimJob(tenant, TypeId(tenant), run_us, load.timeout_ms)

    def _lend(self, tenant: int) -> SimJob | None:
        probe = SimJob(tenant, TypeId(tenant), 0, self.loads[tenant].timeout_ms)
        return self._take(tenant) if self.share.may_borrow(probe) else None

    # ---- what was received

    def received_us(self, tenant: int, from_us: int = 0, until_us: int | None = None) -> int:
        end_us = self.now_us if until_us is None else until_us
        return sum(run.overlap_us(from_us, end_us) for run in self.runs if run.tenant == tenant)

    def share_of(self, tenant: int, from_us: int = 0, until_us: int | None = None) -> float:
        total = sum(self.received_us(each, from_us, until_us) for each in self.loads)
        return self.received_us(tenant, from_us, until_us) / max(1, total)

    def schedule(self) -> list[tuple[int, int]]:
        return [(run.start_us, run.tenant) for run in self.runs]

    def kinds(self) -> tuple[int, int]:
        """Jobs that now run on a reservation, and on a loan."""
        kinds = Counter(run.kind for _, run in self.in_flight.values())
        return kinds[RESERVED], kinds[LENT]
