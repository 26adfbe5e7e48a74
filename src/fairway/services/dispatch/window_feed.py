"""What those who read the store tell the windows: the dispatcher's side of every read.

Which streams want one, what it brought, what a sweep met. A part of the dispatcher, got from it by
`Dispatcher.windows`; no I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from fairway.core.backlog.counts import Survey
from fairway.core.backlog.holds import Hold
from fairway.core.backlog.reading import Budget, Found
from fairway.core.backlog.streams import Stream, StreamKey
from fairway.core.ids import PoolId, ShardId, TenantId, TypeId
from fairway.core.job import QueuedJob
from fairway.runtime.clock import Clock
from fairway.services.dispatch.granting import Granting, Memory
from fairway.services.dispatch.ports import Ports


class WindowFeed:
    def __init__(self, memory: Memory, granting: Granting, ports: Ports, clock: Clock) -> None:
        self._clock = clock
        self._backlog = memory.backlog
        self._leases = memory.leases
        self._shares = memory.shares
        self._pools = memory.pools
        self._granting = granting
        self._want_reads = ports.want_reads

    # -- reads -------------------------------------------------------------------------------

    def begin_reads(self, streams_max: int) -> list[tuple[Stream, int]]:
        """Streams to read next, each with how many jobs to ask for."""
        return self._backlog.reads.begin(streams_max, self._clock.now_us())

    def budget_of(self, wishes: Sequence[tuple[Stream, int]]) -> Budget:
        """How many bytes these reads may bring of each stream."""
        return self._backlog.reads.budget_of(wishes)

    def end_reads(
        self, wishes: Sequence[tuple[Stream, int]], found: Sequence[Found], budget: Budget
    ) -> list[StreamKey]:
        """What these reads brought; answers the streams that have jobs to give now."""
        end, leases, now_us = self._backlog.reads.end_weighed, self._leases, self._clock.now_us()
        return [
            wish[0].key
            for wish, part in zip(wishes, found, strict=True)
            if end(wish, part, budget, leases, now_us)
        ]

    def refilled(self, keys: Iterable[StreamKey]) -> None:
        """Reads put jobs into these windows: who waits for them is served."""
        self._granting.wake({(key.pool, key.tenant) for key in keys})

    def fail_read(self, stream: Stream) -> None:
        """The read did not come through: ask again later."""
        self._backlog.reads.fail(stream)

    def is_only_crowd(self) -> bool:
        """Whether nobody wants a read but those who wait outside a crowded pool."""
        return self._backlog.reading.is_waited_for and not self._backlog.reads.are_wanted

    # -- what changed for very many streams ------------------------------------------------------

    def is_reviewing(self) -> bool:
        """Whether some streams do not know yet what changed."""
        return self._backlog.runnable.is_reviewing

    def review(self) -> None:
        """Go on with that: whoever reads the store calls this."""
        if woken := self._backlog.recheck_limits(self._clock.now_us()):
            self._granting.wake(woken)
        if not self._backlog.runnable.is_reviewing:
            return
        asleep, awake = self._backlog.runnable.review()
        now_us = self._clock.now_us()
        for pool, tenant in asleep:
            self._shares[pool].sleep(tenant, now_us)
        if awake:
            self._granting.wake(awake)

    def limits_rest_seconds(self) -> float:
        """How long until a limit of some key lets jobs out."""
        return self._backlog.limited.rest_us(self._clock.now_us()) / 1e6

    # -- what the store has -----------------------------------------------------------------------

    def noticed(self, heads: Mapping[StreamKey, str], shard: ShardId | None = None) -> None:
        """Streams with work in the store, each with its oldest job; nobody here knew of them.

        `shard` is the one in which they were found."""
        for key, first in heads.items():
            self._backlog.noticed(key, first, shard)
        self._want_reads()

    def swept(self, heads: Mapping[StreamKey, str], shard: ShardId | None = None) -> None:
        """As `noticed`, of streams that may be known well."""
        backlog, leases = self._backlog, self._leases
        for key, first in heads.items():
            if first not in leases and not backlog.knows(key, first):
                backlog.noticed(key, first, shard)
        self._want_reads()

    def counting(self) -> AbstractContextManager[None]:
        """For whoever counts queued rows at a take-over, from before anything of it is granted."""
        return self._backlog.underway.counting()

    def shown_as_queued(self) -> dict[str, tuple[PoolId, TenantId]]:
        """Jobs that run or ran, and wait to all that the store knows; for whoever counts there."""
        unwritten = [lease.job for lease in self._leases.values() if not lease.written]
        found = {job.id: (job.pool, job.tenant) for job in unwritten}
        return found | self._backlog.underway.unrecorded_queues()

    def counted(
        self,
        depths: Mapping[tuple[TenantId, PoolId], int],
        shown_as_queued: dict[str, tuple[PoolId, TenantId]],
    ) -> None:
        """Depths by (tenant, pool) as the store has them, and what was `shown_as_queued` when it
        was asked."""
        underway = Counter((shown_as_queued | self.shown_as_queued()).values())
        self._backlog.counts.counted(depths, underway)

    def pruning(self) -> Iterator[None]:
        """Forget streams with nothing in them, a step at a time."""
        return self._backlog.pruning()

    @property
    def is_before_workers(self) -> bool:
        """No worker has said yet what it runs."""
        return self._backlog.runnable.is_before_workers

    def is_shared(self, type_: TypeId) -> bool:
        """Whether a worker runs it that serves everybody."""
        return self._backlog.runnable.is_shared(type_)

    def surveying(self, found: Survey) -> Iterator[None]:
        """Add what waits, a step at a time."""
        return self._backlog.counts.surveying(found)

    def depth_in(self, pool: PoolId, tenant: TenantId) -> int:
        """How many of a tenant's jobs wait in a pool."""
        return self._backlog.counts.depth(tenant, (pool,))

    def oldest_ms(self, pool: PoolId, tenant: TenantId) -> int | None:
        """Since when the oldest of them waits, of those at hand."""
        return self._backlog.counts.oldest_ms(pool, tenant)

    def jobs_held(self) -> int:
        return self._backlog.windows.jobs_held

    # -- probes ------------------------------------------------------------------------------

    def begin_probe(self, hold: Hold) -> list[Stream]:
        """The streams with jobs that this hold keeps back, to be read."""
        return self._backlog.probes.begin(hold, self._pools.by_number)

    def end_probe(self, read: Mapping[Stream, Sequence[QueuedJob]]) -> list[QueuedJob]:
        """Let those of the jobs out that are free to start; answers them."""
        end, leases, now_us = self._backlog.probes.end, self._leases, self._clock.now_us()
        return [job for stream, jobs in read.items() for job in end(stream, jobs, leases, now_us)]
