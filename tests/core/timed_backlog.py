"""A backlog told the time by a clock, for tests that give it once and not with every call."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence, Set

from fairway.core.backlog.backlog import Backlog
from fairway.core.backlog.circuit_probes import CircuitProbes
from fairway.core.backlog.reading import Budget, Found
from fairway.core.backlog.streams import Stream, WindowLimits
from fairway.core.backlog.window_reads import WindowReads
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.job import QueuedJob

Clock = Callable[[], int]


class TimedReads(WindowReads):
    def __init__(self, of: Backlog, clock: Clock) -> None:
        super().__init__(of._tenants, of.windows, of.reading, of.runnable, of.underway)
        self._clock = clock

    def _now(self, now_us: int | None) -> int:
        return self._clock() if now_us is None else now_us

    def begin(self, streams_max: int, now_us: int | None = None) -> list[tuple[Stream, int]]:
        return super().begin(streams_max, self._now(now_us))

    def end_weighed(
        self,
        wish: tuple[Stream, int],
        found: Found,
        budget: Budget,
        held: Container[str],
        now_us: int | None = None,
    ) -> bool:
        return super().end_weighed(wish, found, budget, held, self._now(now_us))

    def end(
        self,
        stream: Stream,
        jobs: list[QueuedJob],
        asked: int,
        held: Container[str],
        now_us: int | None = None,
    ) -> bool:
        return super().end(stream, jobs, asked, held, self._now(now_us))


class TimedProbes(CircuitProbes):
    def __init__(self, of: Backlog, clock: Clock) -> None:
        super().__init__(of.counts, of.windows, of.reading, of.runnable, of.underway)
        self._clock = clock

    def _now(self, now_us: int | None) -> int:
        return self._clock() if now_us is None else now_us

    def end(
        self,
        stream: Stream,
        jobs: Sequence[QueuedJob],
        held: Container[str],
        now_us: int | None = None,
    ) -> list[QueuedJob]:
        return super().end(stream, jobs, held, self._now(now_us))


class TimedBacklog(Backlog):
    reads: TimedReads
    probes: TimedProbes

    def __init__(self, limits: WindowLimits, clock: Clock = lambda: 0) -> None:
        super().__init__(limits, lambda pool: False)
        self._clock = clock
        self.reads = TimedReads(self, clock)
        self.probes = TimedProbes(self, clock)

    def _now(self, now_us: int | None) -> int:
        return self._clock() if now_us is None else now_us

    def arrived(
        self, jobs: Iterable[QueuedJob], now_us: int | None = None
    ) -> set[tuple[PoolId, TenantId]]:
        return super().arrived(jobs, self._now(now_us))

    def promoted(
        self, jobs: Iterable[QueuedJob], held: Container[str], look: int, now_us: int | None = None
    ) -> set[tuple[PoolId, TenantId]]:
        return super().promoted(jobs, held, look, self._now(now_us))

    def put_back(self, job: QueuedJob, now_us: int | None = None) -> None:
        super().put_back(job, self._now(now_us))

    def take(
        self,
        pool: int,
        tenant: int,
        types: Set[TypeId],
        held: Container[str],
        now_us: int | None = None,
    ) -> QueuedJob | None:
        return super().take(PoolId(pool), TenantId(tenant), types, held, self._now(now_us))

    def run_ended(self, job: QueuedJob, now_us: int | None = None) -> None:
        super().run_ended(job, self._now(now_us))
