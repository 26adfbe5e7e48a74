"""Jobs with limits of their tenant's own: who may start now, and who steps aside until then.

A job whose key is full goes under that key (`parked.py`); when a run with the key ends, as many
as there are places go back to the heads of their streams, and are asked again when they are taken:
another limit of theirs may be full. A rate lets them out by a timer, when its while has passed.
Whoever looks lets out so many at a time: all rates of a shard open at once after a change of owner.
Where a tenant has no room to step aside, the stream of that job stays in the store until half of
the room is free. Jobs without limits meet nothing of this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heapify, heappop, heappush

from fairway.core.backlog.key_limits import KeyCounts, KeyLimit, KeyName, Limits, unpack
from fairway.core.backlog.parked import Entry, ParkedJobs
from fairway.core.backlog.reading import Reading
from fairway.core.backlog.runnable import RunnableStreams
from fairway.core.backlog.streams import Stream
from fairway.core.backlog.tenant_backlog import TenantBacklogs
from fairway.core.backlog.windows import Windows
from fairway.core.ids import PoolId, ShardId, TenantId
from fairway.core.job import QueuedJob
from fairway.core.ownership.tenant_shards import TenantShards

RECHECK_US = 1_000_000
TIMER_US_MIN = 10_000  # nobody is woken more often than that for one key
LOOKS_AT_ONCE = 256  # keys or jobs: a millisecond or two
BREATH_US = 4_000  # for others, between two looks
TIMERS_KEPT = 1_000  # though nobody waits for them


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
        self.rates = self._counts.rates
        self._running, self._key_of = self._counts.running, self._counts.key_of
        self._keys_of = self._counts.keys_of
        self._stalled: dict[TenantId, dict[Stream, None]] = {}  # they wait for room to step aside
        self._unsure: dict[KeyName, None] = {}  # jobs wait for them, and perhaps need not
        self._to_ask: dict[KeyName, None] = {}  # of those, what is left to look at this time
        self._recheck_at_us = 0
        self._timers: list[tuple[int, KeyName]] = []  # a heap: when a while is over, of a key
        self._timed: set[KeyName] = set()
        self._has_new_timer = False
        self.woken: set[tuple[PoolId, TenantId]] = set()  # may have work, and nobody was told yet

    # -- starts ------------------------------------------------------------------------------

    def may_start(self, job: QueuedJob, stream: Stream, now_us: int) -> bool:
        """True: it counts as running. Otherwise it has stepped aside, and is in no window."""
        limits, tenant = unpack(job.limits or b"[]"), job.tenant
        full: KeyLimit | None = None
        if len(limits) > 1:
            full = self._counts.start(job, limits, now_us)
        elif (limit := limits[0]).per_ms:
            if not self.rates.start(tenant, (limit.key, limit.per_ms), limit.most, now_us):
                full = limit
        else:  # as in `KeyCounts.start`: as few calls as can be, for it is so for each job
            key, mine = limit.key, self._running.get(tenant)
            if mine is None:
                mine = self._running[tenant] = {}
            used = mine.get(key, 0)
            if used < limit.most:
                mine[key] = used + 1
                self._key_of[job.id] = key
                return True
            full = limit
        if full is None:
            return True
        self._make_way(job, stream, limits, full, now_us)
        return False

    def _make_way(
        self, job: QueuedJob, stream: Stream, limits: Limits, full: KeyLimit, now_us: int
    ) -> None:
        """It steps aside; where there is no room for that, its stream waits in the store."""
        name = full.name(job.tenant)
        if not self._parked.put(name, full.most, job, stream):
            self._stall(stream)
        else:
            self._tenants[job.pool, job.tenant].parked += 1
            if full.per_ms and name not in self._timed:
                self._set_timer(name, self._opens_us(name, now_us), now_us)
        if len(limits) > 1:  # it may have been let out for another key, and leaves a place there
            names = (limit.name(job.tenant) for limit in limits)
            self._unsure.update(dict.fromkeys(filter(self._parked.waits_under, names)))

    def runs(self, job: QueuedJob, since_us: int) -> None:
        """Granted by an earlier owner: it counts, whatever runs beside it."""
        self._counts.started(job, unpack(job.limits or b"[]"), since_us)

    def owner_since(self, shard: ShardId, tenant_shards: TenantShards, now_us: int) -> None:
        """A shard is ours from now on; of what started in it before, only what runs is known.

        It may have been ours before: timers of that time are no answer to when a key opens now.
        """
        rates = self._counts.rates
        rates.begin_anew(shard, tenant_shards, now_us)
        self._keep_timers(lambda name: rates.home(name[0]) != shard)

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
        if self._to_ask:
            return BREATH_US
        return max(self._timers[0][0] - now_us, BREATH_US) if self._timers else RECHECK_US

    def _opens_us(self, name: KeyName, now_us: int) -> int:
        tenant, key, per_ms = name
        return self._counts.rates.opens_us(tenant, (key, per_ms), now_us)

    def _set_timer(self, name: KeyName, at_us: int, now_us: int) -> None:
        heappush(self._timers, (max(at_us, now_us + TIMER_US_MIN), name))
        self._timed.add(name)
        self._has_new_timer = True

    def _keep_timers(self, is_of_use: Callable[[KeyName], bool]) -> None:
        self._timers = [one for one in self._timers if is_of_use(one[1])]
        heapify(self._timers)
        self._timed = {name for _, name in self._timers}

    def _timers_over(self, now_us: int) -> list[Entry]:
        self._has_new_timer = False
        freed = list[Entry]()
        for _ in range(LOOKS_AT_ONCE):
            if not self._timers or self._timers[0][0] > now_us or len(freed) >= LOOKS_AT_ONCE:
                break
            name = heappop(self._timers)[1]
            self._timed.discard(name)
            freed += self._let_out(name, self._counts.used(name, now_us), len(freed))
            if self._parked.waits_under(name):
                is_cut = len(freed) >= LOOKS_AT_ONCE  # and it may be open still
                opens_us = now_us if is_cut else self._opens_us(name, now_us)
                self._set_timer(name, opens_us, now_us)
        return freed

    # -- ends --------------------------------------------------------------------------------

    def ended(self, job: QueuedJob, now_us: int) -> Sequence[Entry]:
        """Its run is over; answers who goes back to its stream for that."""
        key, tenant, freed = self._key_of.pop(job.id, None), job.tenant, _NOBODY
        if key is None:  # as a rule its limits are rates, to which an end is nothing
            if self._keys_of:
                freed = self._ended(job, now_us)
        else:  # as in `KeyCounts.ended`: one key, as a rule
            mine = self._running[tenant]
            left = mine[key] - 1
            if left:
                mine[key] = left
            else:
                del mine[key]
                if not mine:
                    del self._running[tenant]
            if tenant in self._parked.rooms:
                name = (tenant, key, 0)
                if self._parked.waits_under(name):
                    freed = self._let_out(name, left)
        if self._stalled and tenant in self._stalled and self._is_half_free(tenant):
            self._go_on(tenant)
        return freed

    def _ended(self, job: QueuedJob, now_us: int) -> list[Entry]:
        """The same of one that counted under several keys."""
        freed = list[Entry]()
        for key in self._counts.ended(job):
            name = (job.tenant, key, 0)
            freed += self._let_out(name, self._counts.used(name, now_us))
        return freed

    def recheck(self, now_us: int) -> list[Entry]:
        """Now and then: who could go back, though no run ended that would have said so.

        A job that was let out may have been given up with its window, or may not start yet.
        """
        freed = self._timers_over(now_us)
        if now_us >= self._recheck_at_us:
            self._recheck_at_us = now_us + RECHECK_US
            self._to_ask |= self._unsure
            self._unsure = {}
            self._counts.rates.forget_over(now_us)
            if len(self._timers) > 2 * self._parked.keys + TIMERS_KEPT:  # who waited was cancelled
                self._keep_timers(self._parked.waits_under)
            for tenant in list(self._stalled):
                if self._parked.has_room(tenant) and self._is_half_free(tenant):
                    self._go_on(tenant)
        for _ in range(LOOKS_AT_ONCE):
            if not self._to_ask or len(freed) >= LOOKS_AT_ONCE:
                break
            name, _nothing = self._to_ask.popitem()
            freed += self._let_out(name, self._counts.used(name, now_us), len(freed))
        return freed

    def take_woken(self) -> set[tuple[PoolId, TenantId]]:
        woken, self.woken = self.woken, set()
        return woken

    def _let_out(self, name: KeyName, used: int, others: int = 0) -> list[Entry]:
        """As many as there are places. They may not start after all: so the key is asked again."""
        parked, freed, most = self._parked, list[Entry](), LOOKS_AT_ONCE - others
        while len(freed) < most and (entry := parked.take(name, used)) is not None:
            used += 1
            job = entry[2]
            self._tenants[job.pool, job.tenant].parked -= 1
            freed.append(entry)
        if freed and parked.waits_under(name):
            self._unsure[name] = None
        return freed

    def gone(self, ids: Iterable[str]) -> None:
        """These jobs wait no more."""
        self._left(self._parked.drop(ids))

    def forget_tenant(self, tenant: TenantId) -> None:
        self._left(self._parked.drop_tenant(tenant))

    def forget_shard(self, shards: Collection[ShardId], tenant_shards: TenantShards) -> None:
        self._left(self._parked.drop_shards(shards, tenant_shards))

    def _left(self, jobs: Iterable[QueuedJob]) -> None:
        for job in jobs:
            self._tenants[job.pool, job.tenant].parked -= 1

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


_NOBODY: Sequence[Entry] = ()
