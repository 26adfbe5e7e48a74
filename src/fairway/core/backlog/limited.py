"""Jobs with limits of their tenant's own: who may start now, and who steps aside until then.

A job whose key is full goes under that key (`parked.py`); when a run with the key ends, as many
as there are places go back to the heads of their streams, and are asked again when they are taken:
another limit of theirs may be full. Where a tenant has no room to step aside, the stream of that
job stays in the store until half of the room is free. Jobs without limits meet nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairway.core.backlog.key_limits import KeyCounts, KeyLimit, KeyName, unpack
from fairway.core.backlog.parked import ParkedJobs
from fairway.core.backlog.reading import Reading
from fairway.core.backlog.runnable import RunnableStreams
from fairway.core.backlog.streams import Stream
from fairway.core.backlog.tenant_backlog import TenantBacklogs
from fairway.core.backlog.windows import Windows
from fairway.core.ids import PoolId, ShardId, TenantId
from fairway.core.job import QueuedJob

RECHECK_US = 1_000_000


class LimitedJobs:
    def __init__(
        self,
        tenants: TenantBacklogs,
        windows: Windows,
        reading: Reading,
        runnable: RunnableStreams,
        parked: ParkedJobs,
    ) -> None:
        self._tenants = tenants
        self._windows = windows
        self._reading = reading
        self._runnable = runnable
        self._parked = parked
        self._counts = KeyCounts()
        self._stalled: dict[TenantId, dict[Stream, None]] = {}  # they wait for room to step aside
        self._unsure: dict[KeyName, None] = {}  # jobs wait for them, and perhaps need not
        self._recheck_at_us = 0
        self.woken: set[tuple[PoolId, TenantId]] = set()  # may have work, and nobody was told yet

    # -- starts ------------------------------------------------------------------------------

    def may_start(self, job: QueuedJob, stream: Stream) -> bool:
        """True: it counts as running. Otherwise it has stepped aside, and is in no window."""
        limits = unpack(job.limits or b"[]")
        full = self._counts.full(job.tenant, limits)
        if full is None:
            self._counts.started(job.tenant, limits)
            return True
        if self._parked.has_room(job.tenant, len(job.payload)):
            self._parked.put((job.tenant, full.key), job)
            self._tenants[job.pool, job.tenant].parked += 1
        else:
            self._stall(stream)
        if len(limits) > 1:  # it may have been let out for another key, and leaves a place there
            self._unsure.update(dict.fromkeys((job.tenant, limit.key) for limit in limits))
        return False

    def runs(self, job: QueuedJob) -> None:
        """Granted by an earlier owner: it counts, whatever runs beside it."""
        self._counts.started(job.tenant, unpack(job.limits or b"[]"))

    def full(self, tenant: TenantId, packed: bytes) -> KeyLimit | None:
        """What keeps a job with these limits from starting now, if one of them does."""
        return self._counts.full(tenant, unpack(packed))

    # -- ends --------------------------------------------------------------------------------

    def ended(self, job: QueuedJob) -> list[QueuedJob]:
        """Its run is over; answers who goes back to its stream."""
        limits = unpack(job.limits or b"[]")
        self._counts.ended(job.tenant, limits)
        freed = [one for limit in limits for one in self._let_out((job.tenant, limit.key))]
        if job.tenant in self._stalled and self._is_half_free(job.tenant):
            self._go_on(job.tenant)
        return freed

    def recheck(self, now_us: int) -> list[QueuedJob]:
        """Now and then: who could go back, though no run ended that would have said so.

        A job that was let out may have been given up with its window, or may not start yet.
        """
        if now_us < self._recheck_at_us:
            return []
        self._recheck_at_us = now_us + RECHECK_US
        unsure, self._unsure = self._unsure, {}
        freed = [job for name in unsure for job in self._let_out(name)]
        for tenant in list(self._stalled):
            if self._parked.has_room(tenant) and self._is_half_free(tenant):
                self._go_on(tenant)
        return freed

    def take_woken(self) -> set[tuple[PoolId, TenantId]]:
        woken, self.woken = self.woken, set()
        return woken

    def _let_out(self, name: KeyName) -> Iterator[QueuedJob]:
        """As many as there are places. They may not start after all: so the key is asked again."""
        parked, going = self._parked, self._counts.running(name)
        while (job := parked.first(name)) is not None:
            limits = unpack(job.limits or b"[]")
            if any(one.key == name[1] and going >= one.most for one in limits):
                return
            going += 1
            yield self._left(parked.take(name))
            if parked.waits_under(name):
                self._unsure[name] = None

    def gone(self, ids: Iterable[str]) -> None:
        """These jobs wait no more."""
        for job in self._parked.drop(ids):
            self._left(job)

    def forget_shard(self, shard: ShardId) -> None:
        for job in self._parked.drop_shard(shard):
            self._left(job)

    def _left(self, job: QueuedJob) -> QueuedJob:
        self._tenants[job.pool, job.tenant].parked -= 1
        return job

    # -- streams that have no room to step aside -----------------------------------------------

    def _stall(self, stream: Stream) -> None:
        stream.blocked = True
        self._windows.evict(stream)
        self._stalled.setdefault(stream.key.tenant, {})[stream] = None

    def _is_half_free(self, tenant: TenantId) -> bool:
        """Not before: each time, all that stepped aside is read past once more."""
        return 2 * self._parked.count(tenant) <= self._parked.most(tenant)

    def _go_on(self, tenant: TenantId) -> None:
        for stream in self._stalled.pop(tenant):
            if self._windows.is_ours(stream):
                stream.blocked = not self._runnable.may_run(stream.key)
                self._reading.want_more(stream)
