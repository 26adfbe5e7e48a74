"""A tenant's slots in virtual time: lanes with jobs, shared out by the real backlog."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush

from tests.core.backlog.test_backlog import POOL, make
from tests.core.timed_backlog import TimedBacklog

from fairway.core.backlog.streams import WindowLimits
from fairway.core.ids import TenantId, TypeId
from fairway.core.job import QueuedJob

SECOND = 1_000_000
FIRST_TYPE = TypeId(1)
BACKLOG = 40  # jobs that a lane with work keeps waiting


@dataclass(frozen=True)
class Load:
    """What one lane asks for."""

    run_us: int
    from_us: int = 0
    until_us: int = 1 << 60
    type_id: TypeId = FIRST_TYPE
    waiting: int = BACKLOG  # jobs it keeps waiting while it has work


class LaneWorld:
    """One tenant in one pool; every free slot takes its next job at once."""

    def __init__(self, slots: int, loads: dict[int, Load]) -> None:
        self.now_us = 0
        self.free = slots
        self.loads = loads
        self.types: frozenset[TypeId] = frozenset({FIRST_TYPE, TypeId(2)})
        self.received_us: Counter[int] = Counter()  # slot-time until now, running jobs too
        self.backlog = TimedBacklog(WindowLimits(), lambda: self.now_us)
        self.queued: Counter[int] = Counter()
        self._running: list[tuple[int, int, QueuedJob]] = []
        self._number = 0

    def run(self, until_us: int, step_us: int = SECOND) -> LaneWorld:
        while self.now_us < until_us:
            self._fill()
            self._grant()
            ends_us = self._running[0][0] if self._running else until_us
            self._pass(min(ends_us, self.now_us + step_us, until_us))
        return self

    def share(self, lane: int) -> float:
        return self.received_us[lane] / max(1, sum(self.received_us.values()))

    def forget_the_past(self) -> None:
        self.received_us.clear()

    def _fill(self) -> None:
        for lane, load in self.loads.items():
            if load.from_us <= self.now_us < load.until_us:
                for _ in range(load.waiting - self.queued[lane]):
                    self._number += 1
                    job = make(self._number, ms=self._number, lane=lane, type=load.type_id)
                    self.backlog.arrived([job])
                    self.queued[lane] += 1

    def _grant(self) -> None:
        take = self.backlog.taker(POOL, self.types, (), lambda tenant: None, self.now_us)
        while self.free and (job := take(TenantId(1))) is not None:
            self.free -= 1
            self.queued[job.lane] -= 1
            ends_us = self.now_us + self.loads[job.lane].run_us
            heappush(self._running, (ends_us, self._number, job))
            self._number += 1

    def _pass(self, then_us: int) -> None:
        for _, _, job in self._running:
            self.received_us[job.lane] += then_us - self.now_us
        self.now_us = then_us
        while self._running and self._running[0][0] <= then_us:
            self.backlog.run_ended(heappop(self._running)[2])
            self.free += 1
