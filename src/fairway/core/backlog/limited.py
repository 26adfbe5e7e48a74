"""Jobs with limits of their tenant's own: who may start now, and who steps aside until then.

A job whose key is full goes under that key (`parked.py`); when a run with the key ends, as many
as there are places go back to the heads of their streams, and are asked again when they are taken:
another limit of theirs may be full. A rate lets them out by a timer, when its while has passed.
Where a tenant has no room to step aside, the stream of that job stays in the store until half of
the room is free. Jobs without limits meet nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

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
TIMER_US_MIN = 10_000  # nobody is woken more often than that for one key


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
        self._timers: list[tuple[int, KeyName]] = []  # a heap: when a while is over, of a key
        self._timed: set[KeyName] = set()
        self._has_new_timer = False
        self.woken: set[tuple[PoolId, TenantId]] = set()  # may have work, and nobody was told yet

    # -- starts ------------------------------------------------------------------------------

    def may_start(self, job: QueuedJob, stream: Stream, now_us: int) -> bool:
        """True: it counts as running. Otherwise it has stepped aside, and is in no window."""
        limits = unpack(job.limits or b"[]")
        full = self._counts.full(job.tenant, limits, now_us)
        if full is None:
            self._counts.started(job.tenant, limits, now_us)
            return True
        if self._parked.has_room(job.tenant, len(job.payload)):
            self._parked.put(full.name(job.tenant), job)
            self._tenants[job.pool, job.tenant].parked += 1
        else:
            self._stall(stream)
        if full.per_ms:
            self._set_timer(full.name(job.tenant), now_us)
        if len(limits) > 1:  # it may have been let out for another key, and leaves a place there
            self._unsure.update(dict.fromkeys(limit.name(job.tenant) for limit in limits))
        return False

    def runs(self, job: QueuedJob, since_us: int) -> None:
        """Granted by an earlier owner: it counts, whatever runs beside it."""
        self._counts.started(job.tenant, unpack(job.limits or b"[]"), since_us)

    def owner_since(self, shard: ShardId, shard_count: int, now_us: int) -> None:
        """A shard is ours from now on; of what started in it before, only what runs is known."""
        self._counts.rates.begin_anew(shard, shard_count, now_us)

    def full(self, tenant: TenantId, packed: bytes, now_us: int) -> KeyLimit | None:
        """What keeps a job with these limits from starting now, if one of them does."""
        return self._counts.full(tenant, unpack(packed), now_us)

    # -- whiles that pass -----------------------------------------------------------------------

    @property
    def wants_a_look(self) -> bool:
        """Whether whoever looks now and then should look now, to learn how long it may rest."""
        return bool(self.woken) or self._has_new_timer

    def rest_us(self, now_us: int) -> int:
        """How long nobody need look."""
        return max(self._timers[0][0] - now_us, 0) if self._timers else RECHECK_US

    def _set_timer(self, name: KeyName, now_us: int) -> None:
        if name not in self._timed:
            tenant, key, per_ms = name
            opens_us = self._counts.rates.opens_us(tenant, (key, per_ms), now_us)
            heappush(self._timers, (max(opens_us, now_us + TIMER_US_MIN), name))
            self._timed.add(name)
            self._has_new_timer = True

    def _timers_over(self, now_us: int) -> Iterator[QueuedJob]:
        self._has_new_timer = False
        while self._timers and self._timers[0][0] <= now_us:
            name = heappop(self._timers)[1]
            self._timed.discard(name)
            yield from self._let_out(name, now_us)
            if self._parked.waits_under(name):
                self._set_timer(name, now_us)

    # -- ends --------------------------------------------------------------------------------

    def ended(self, job: QueuedJob, now_us: int) -> list[QueuedJob]:
        """Its run is over; answers who goes back to its stream."""
        limits = unpack(job.limits or b"[]")
        self._counts.ended(job.tenant, limits)
        freed = list[QueuedJob]()
        if self._parked.count(job.tenant):
            for limit in limits:
                freed += self._let_out(limit.name(job.tenant), now_us)
        if job.tenant in self._stalled and self._is_half_free(job.tenant):
            self._go_on(job.tenant)
        return freed

    def recheck(self, now_us: int) -> list[QueuedJob]:
        """Now and then: who could go back, though no run ended that would have said so.

        A job that was let out may have been given up with its window, or may not start yet.
        """
        freed = list(self._timers_over(now_us))
        if now_us < self._recheck_at_us:
            return freed
        self._recheck_at_us = now_us + RECHECK_US
        unsure, self._unsure = self._unsure, {}
        freed += [job for name in unsure for job in self._let_out(name, now_us)]
        for tenant in list(self._stalled):
            if self._parked.has_room(tenant) and self._is_half_free(tenant):
                self._go_on(tenant)
        return freed

    def take_woken(self) -> set[tuple[PoolId, TenantId]]:
        woken, self.woken = self.woken, set()
        return woken

    def _let_out(self, name: KeyName, now_us: int) -> Iterator[QueuedJob]:
        """As many as there are places. They may not start after all: so the key is asked again."""
        parked, tenant, going = self._parked, name[0], 0
        while (job := parked.first(name)) is not None:
            mine = [one for one in unpack(job.limits or b"[]") if one.name(tenant) == name]
            if any(going + self._counts.used(tenant, one, now_us) >= one.most for one in mine):
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
