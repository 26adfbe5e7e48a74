"""Which streams may run: those whose type some worker runs for them, and that nobody holds.

What a shared worker runs may run for every tenant, what a tenant's own worker runs for that tenant
alone: what one tenant's workers say gives no other tenant's jobs a place in memory.

Workers come and go with their types, a tenant's own as often as it likes, and it may pause and
resume as often: only streams that a change is about are looked at, and very many of them in parts.

- What workers run changed: until then streams are as before. One that may run is read a moment
  later, one that may not takes memory a moment longer.
- Holds changed: nothing starts that is held from this moment. Whoever takes jobs leaves a stream
  alone that was not looked at since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Set

from fairway.core.backlog.holds import Holds
from fairway.core.backlog.reading import Reading
from fairway.core.backlog.streams import Stream, StreamKey
from fairway.core.backlog.tenant_backlog import TenantBacklogs, Unsettled
from fairway.core.backlog.windows import Windows
from fairway.core.ids import PoolId, TenantId, TypeId

REVIEWED_AT_ONCE = 256  # streams: half a millisecond
EVICTED_AT_ONCE = 2_000  # jobs, likewise


class RunnableStreams:
    def __init__(self, tenants: TenantBacklogs, windows: Windows, reading: Reading) -> None:
        self._tenants = tenants
        self._windows = windows
        self._reading = reading
        self.holds = Holds()
        self._runnable: Set[TypeId] | None = None  # job types of shared workers; None: all may run
        # tenant → job types of its own workers
        self._own_runnable: dict[TenantId, Set[TypeId]] = {}
        self._by_type: dict[TypeId, dict[Stream, None]] = {}  # all streams, in order
        self._pools: set[PoolId] = set()  # that any stream was in
        self._to_review: dict[Stream, None] = {}
        self._unsettled: deque[Unsettled] = deque()  # tenants take turns
        # of whom some were, to be told by `review`
        self._settled: dict[tuple[PoolId, TenantId], None] = {}

    def set_runnable(self, types: Mapping[TenantId | None, Set[TypeId]]) -> None:
        """All job types that some worker runs, of those whose workers' changed: a tenant's own, or
        None's, which are shared.

        Others take no memory and stand in nobody's way. Before the first worker came, all may run.
        """
        if self._runnable is None:
            self._runnable = frozenset()
            for same in self._by_type.values():
                self._to_review.update(same)
        for tenant, now in types.items():
            if tenant is None:
                before, self._runnable = self._runnable, now
                for type_ in now ^ before:
                    self._to_review.update(self._by_type.get(type_, {}))
            else:
                self._set_own_runnable(tenant, now)
        self._review_types()

    def _set_own_runnable(self, tenant: TenantId, types: Set[TypeId]) -> None:
        """Costs a look at what this tenant has here, whatever others have."""
        changed = types ^ self._own_runnable.pop(tenant, frozenset())
        if types:
            self._own_runnable[tenant] = types
        for pool_tenant in self._pool_tenants_of({tenant}):
            if (backlog := self._tenants.get(pool_tenant)) is not None:
                about = [one for one in backlog.streams.values() if one.type in changed]
                self._to_review.update(dict.fromkeys(about))

    def set_holds(self, holds: Holds) -> list[tuple[PoolId, TenantId]]:
        """What must not start from now on; answers each (pool, tenant) with nothing left to run.

        Only whom the change is about is looked at: a tenant may pause its own as often as it likes.
        """
        changes, self.holds = holds.unlike(self.holds), holds
        for pool_tenant in self._pool_tenants_of(changes.tenants):
            backlog = self._tenants.get(pool_tenant)
            if backlog is None or not backlog.streams:
                continue
            if types := changes.types_of(*pool_tenant):
                if backlog.unsettled is None:
                    backlog.unsettled = Unsettled()
                    self._unsettled.append(backlog.unsettled)
                backlog.unsettled.add(types, backlog.streams.values())
        self._review_holds()
        return self._asleep()

    def _pool_tenants_of(self, tenants: Set[TenantId]) -> Iterable[tuple[PoolId, TenantId]]:
        if 0 in tenants:
            return self._tenants
        return ((pool, tenant) for tenant in tenants for pool in self._pools)

    @property
    def is_reviewing(self) -> bool:
        """Whether some streams do not know yet what changed: whoever reads the store goes on."""
        return bool(self._to_review or self._unsettled or self._settled)

    def review(self) -> tuple[list[tuple[PoolId, TenantId]], list[tuple[PoolId, TenantId]]]:
        """Of what changed, as much as takes a moment; mostly that is all.

        Answers each (pool, tenant) whose holds were looked at: those with nothing left to run, and
        those with jobs that nobody could take before.
        """
        self._review_holds()
        self._review_types()
        asleep, awake = self._asleep(), list(self._settled)
        self._settled.clear()
        return asleep, awake

    def _asleep(self) -> list[tuple[PoolId, TenantId]]:
        asleep = [pool_tenant for pool_tenant in self._settled if not self._has_ready(pool_tenant)]
        for pool_tenant in asleep:
            del self._settled[pool_tenant]
        return asleep

    def _has_ready(self, pool_tenant: tuple[PoolId, TenantId]) -> bool:
        backlog = self._tenants.get(pool_tenant)
        return backlog is not None and backlog.ready > 0

    def _review_holds(self) -> None:
        enough = self._windows.jobs_held - EVICTED_AT_ONCE
        for _ in range(REVIEWED_AT_ONCE):
            if not self._unsettled or self._windows.jobs_held <= enough:
                return
            self._settle_next()

    def _review_types(self) -> None:
        is_tight = self._windows.jobs_held > self._windows.limits.jobs_total // 2
        enough = self._windows.jobs_held - EVICTED_AT_ONCE
        for _ in range(min(REVIEWED_AT_ONCE, len(self._to_review))):
            stream, _nothing = self._to_review.popitem()
            self._look_at(stream, evicts=is_tight)
            if self._windows.jobs_held <= enough:
                return

    def _settle_next(self) -> None:
        """A stream of the tenant whose turn it is, if it has one left."""
        unsettled = self._unsettled[0]
        if not unsettled.left:
            self._unsettled.popleft()
            return
        self._unsettled.rotate(-1)
        stream, _nothing = unsettled.left.popitem()
        self.settle(stream, unsettled)

    def settle(self, stream: Stream, unsettled: Unsettled) -> None:
        """Let a stream know of the holds that are in force now."""
        self._strike_off(stream, unsettled)
        self._settled[stream.key.pool, stream.key.tenant] = None
        if unsettled.is_about(stream):
            # Probes are in windows of streams that are held: only other holds put them back.
            self._look_at(stream, evicts=self.is_held(stream.key))

    def _strike_off(self, stream: Stream, unsettled: Unsettled) -> None:
        unsettled.left.pop(stream, None)
        if not unsettled.left:
            self._tenants[stream.key.pool, stream.key.tenant].unsettled = None

    def is_unsettled(self, stream: Stream) -> bool:
        unsettled = self._tenants[stream.key.pool, stream.key.tenant].unsettled
        return unsettled is not None and stream in unsettled.left

    def _look_at(self, stream: Stream, *, evicts: bool) -> None:
        stream.blocked = not self.may_run(stream.key)
        if stream.blocked:
            if evicts:
                self._windows.evict(stream)
        else:
            self._reading.want_more(stream)

    def may_run(self, key: StreamKey) -> bool:
        return self._has_worker(key) and not self.is_held(key)

    def is_held(self, key: StreamKey) -> bool:
        return bool(self.holds) and self.holds.on(key) is not None

    @property
    def is_before_workers(self) -> bool:
        """No worker has said yet what it runs."""
        return self._runnable is None

    def is_shared(self, type_: TypeId) -> bool:
        """Whether a worker runs it that serves everybody."""
        return self._runnable is None or type_ in self._runnable

    def _has_worker(self, key: StreamKey) -> bool:
        if self.is_shared(key.type):
            return True
        return key.type in self._own_runnable.get(key.tenant, ())

    def made(self, stream: Stream) -> None:
        stream.blocked = not self.may_run(stream.key)
        self._pools.add(stream.key.pool)
        self._by_type.setdefault(stream.type, {})[stream] = None

    def drop(self, is_gone: Callable[[Stream], bool]) -> None:
        """They are not ours any more, or not where they were. All are gone through."""
        for (pool, tenant), backlog in list(self._tenants.items()):
            for stream in [one for one in backlog.streams.values() if is_gone(one)]:
                for job in stream.window:
                    self._windows.count(job, -1)
                backlog.drop(stream)
                self.dropped(stream)
            if not backlog.streams and not backlog.parked:  # which are another shard's
                del self._tenants[pool, tenant]

    def dropped(self, stream: Stream) -> None:
        """Its tenant has it no more."""
        self._reading.forget(stream)
        self._to_review.pop(stream, None)
        unsettled = self._tenants[stream.key.pool, stream.key.tenant].unsettled
        if unsettled is not None:
            self._strike_off(stream, unsettled)
        same = self._by_type[stream.type]
        del same[stream]
        if not same:
            del self._by_type[stream.type]
