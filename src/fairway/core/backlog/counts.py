"""Questions about the backlog in memory, and the counts they are answered from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappush, heapreplace
from itertools import chain
from typing import NamedTuple

from fairway.core.backlog.holds import Holds
from fairway.core.backlog.streams import Stream
from fairway.core.backlog.tenant_backlog import TenantBacklog, TenantBacklogs
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.job import due_ms_of
from fairway.core.time_slices import in_steps

DEEPEST_MAX = 200  # queues that are told by name
STREAMS_IN_PASSING = 100
NO_WORKER = "no_worker"  # why jobs wait whose type nobody runs
TENANTS_NAMED_MAX = 10  # of those with such jobs, by pool
TYPES_NAMED_MAX = 3  # of each of these
UNCAPPED = 1 << 60


class FreeStreams:
    """Of one tenant in one pool: what nothing but slots and its cap keeps from starting."""

    __slots__ = ("_run_us", "jobs", "oldest_ms", "ready", "streams")

    def __init__(self) -> None:
        self.streams = 0
        self.ready = 0  # jobs at hand
        self.jobs = 0  # so many at least
        self.oldest_ms = math.inf
        self._run_us = 0  # of one of each stream and of those at hand, together

    def note(self, stream: Stream, run_us: int) -> None:
        self.streams += 1
        self.ready += len(stream.window)
        self.jobs = self.ready
        self._run_us += (len(stream.window) + 1) * run_us
        if stream.window:
            self.oldest_ms = min(self.oldest_ms, due_ms_of(stream.window[0]))

    @property
    def mean_us(self) -> int:
        """Of a run; every stream counts as if one more of its jobs were at hand."""
        return self._run_us // max(self.ready + self.streams, 1)


class Expected(NamedTuple):
    """What is known elsewhere of jobs that wait."""

    room: Callable[[PoolId, TenantId], int]  # so many more of its jobs the tenant's cap lets run
    run_us: Callable[[PoolId, TypeId], int]  # a run of this type
    # Whether a worker runs it that serves everybody, and not only its tenant's own.
    is_shared: Callable[[TypeId], bool] = lambda type_: True


UNKNOWN = Expected(lambda pool, tenant: UNCAPPED, lambda pool, type_: 0)


class Survey:
    """What waits, by pool."""

    def __init__(
        self,
        holds: Holds | None = None,
        expected: Expected = UNKNOWN,
        *,
        is_before_workers: bool = False,
    ) -> None:
        self.holds = holds or Holds()  # whatever keeps jobs from starting
        # No worker has come yet: streams are made ready for all types, and nobody runs any.
        self.is_before_workers = is_before_workers
        self._expected = expected
        self._run_us: dict[tuple[PoolId, TypeId], int] = {}
        # What could start if there were a slot for everybody: not held, parked or beyond its
        # tenant's cap, nor left to its tenant's own workers.
        self.runnable: dict[PoolId, int] = defaultdict(int)
        self.runnable_us: dict[PoolId, int] = defaultdict(int)  # slot-time of those
        self.runnable_oldest_ms: dict[PoolId, float] = defaultdict(lambda: math.inf)
        self.depth: dict[PoolId, int] = defaultdict(int)
        # at the head of a window
        self.oldest_ms: dict[PoolId, float] = defaultdict(lambda: math.inf)
        # By pool and reason: jobs that must not start, or that nobody runs; so many at least.
        self.held: dict[tuple[PoolId, str], int] = defaultdict(int)
        # Whose jobs are of types that nobody runs, and which types of each: some of them.
        self.unserved: dict[PoolId, dict[TenantId, set[TypeId]]] = defaultdict(dict)
        self.parked: dict[PoolId, int] = defaultdict(int)  # jobs that wait for a place under a key
        self.deepest: list[tuple[int, TenantId, PoolId]] = []  # a heap of the longest queues

    def note(self, pool: PoolId, tenant: TenantId, backlog: TenantBacklog) -> None:
        self.depth[pool] += backlog.depth
        self.parked[pool] += backlog.parked
        if not backlog.depth:
            return
        if len(self.deepest) < DEEPEST_MAX:
            heappush(self.deepest, (backlog.depth, tenant, pool))
        elif backlog.depth > self.deepest[0][0]:
            heapreplace(self.deepest, (backlog.depth, tenant, pool))

    def why(self, blocked: Stream) -> str:
        """Why nothing of this stream starts."""
        if (hold := self.holds.on(blocked.key)) is not None:
            return hold.reason
        named = self.unserved[blocked.key.pool]
        types = named.get(blocked.key.tenant)
        if types is None and len(named) < TENANTS_NAMED_MAX:
            types = named[blocked.key.tenant] = set()
        if types is not None and len(types) < TYPES_NAMED_MAX:
            types.add(blocked.type)
        return NO_WORKER

    def run_us(self, pool: PoolId, type_: TypeId) -> int:
        """Asked for once a survey, however many streams there are."""
        key = pool, type_
        if key not in self._run_us:
            self._run_us[key] = self._expected.run_us(pool, type_)
        return self._run_us[key]

    def is_shared(self, type_: TypeId) -> bool:
        return self._expected.is_shared(type_)

    def note_runnable(self, pool_tenant: tuple[PoolId, TenantId], free: FreeStreams) -> None:
        pool, tenant = pool_tenant
        jobs = min(free.jobs, self._expected.room(pool, tenant))
        if jobs > 0:
            self.runnable[pool] += jobs
            self.runnable_us[pool] += jobs * free.mean_us
            self.runnable_oldest_ms[pool] = min(self.runnable_oldest_ms[pool], free.oldest_ms)

    def note_held(self, pool: PoolId, streams: Mapping[str, int], jobs: int | None) -> None:
        """Streams of one backlog that wait, by why, and the jobs of all of them if that is known;
        else it is one each at least."""
        for reason, count in streams.items():
            is_told = jobs is not None and len(streams) == 1
            self.held[pool, reason] += max(jobs or 0, count) if is_told else count


class BacklogCounts:
    """What is known of every (pool, tenant) with streams here."""

    def __init__(self, tenants: TenantBacklogs) -> None:
        self._tenants = tenants

    def depth(self, tenant: TenantId, pools: Iterable[PoolId]) -> int:
        """Queued jobs of a tenant over these pools."""
        found = (self._tenants.get((pool, tenant)) for pool in pools)
        return sum(backlog.depth for backlog in found if backlog)

    def streams_of(self, tenant: TenantId, pools: Iterable[PoolId]) -> Iterator[Stream]:
        """A tenant's streams over these pools."""
        found = (self._tenants.get((pool, tenant)) for pool in pools)
        return (stream for backlog in found if backlog for stream in backlog.streams.values())

    def pool_tenants(self) -> list[tuple[PoolId, TenantId]]:
        """Every (pool, tenant) with streams here."""
        return list(self._tenants)

    def surveying(self, found: Survey) -> Iterator[None]:
        """Add what waits, a step at a time."""
        return in_steps(
            chain.from_iterable(
                self._survey(pool_tenant, found) for pool_tenant in self.pool_tenants()
            )
        )

    def _survey(self, pool_tenant: tuple[PoolId, TenantId], found: Survey) -> Iterator[int]:
        """Yields how much was looked at since; others may go on then."""
        if (backlog := self._tenants.get(pool_tenant)) is None:
            return
        found.note(*pool_tenant, backlog)
        if backlog.ready or backlog.depth:
            yield from self._survey_streams(pool_tenant, backlog, found)
        else:
            yield 1

    def _survey_streams(
        self, pool_tenant: tuple[PoolId, TenantId], backlog: TenantBacklog, found: Survey
    ) -> Iterator[int]:
        """If all is at hand of the streams that may start, the others have the rest."""
        pool, held, oldest_ms = pool_tenant[0], dict[str, int](), found.oldest_ms
        is_known, free, own = backlog.crowd is None, FreeStreams(), FreeStreams()
        nobody_works = found.is_before_workers
        for stream in list(backlog.streams.values()):
            yield 1
            if not (stream.blocked or nobody_works):
                if stream.window:
                    oldest_ms[pool] = min(oldest_ms[pool], due_ms_of(stream.window[0]))
                whose = free if found.is_shared(stream.type) else own
                whose.note(stream, found.run_us(pool, stream.type))
                is_known = is_known and not (stream.more or stream.reading)
            elif stream.more or stream.window:
                reason = found.why(stream)
                held[reason] = held.get(reason, 0) + 1
        if held:
            ready = free.ready + own.ready
            known = backlog.depth - backlog.parked - ready if is_known else None
            found.note_held(pool, held, known)
        elif (
            free.streams and not own.streams and backlog.crowd is None
        ):  # all that is in the store is theirs
            free.jobs = max(backlog.depth - backlog.parked, free.ready)
        found.note_runnable(pool_tenant, free)

    def oldest_ms(self, pool: PoolId, tenant: TenantId) -> int | None:
        """Since when the tenant's oldest job waits, of those at hand; None: none is, or its
        streams are too many to look at them in passing."""
        backlog = self._tenants.get((pool, tenant))
        if backlog is None or len(backlog.streams) > STREAMS_IN_PASSING:
            return None
        heads = [stream.window[0] for stream in backlog.streams.values() if stream.window]
        return min(map(due_ms_of, heads), default=None)

    def counted(
        self,
        depths: Mapping[tuple[TenantId, PoolId], int],
        underway: Mapping[tuple[PoolId, TenantId], int],
    ) -> None:
        """Depths by (tenant, pool) as the store has them, taken once at a take-over.

        To the store a job waits until its end, or its lease, is written: those that were granted
        here while it counted are `underway`, and wait no more.
        """
        for (tenant, pool), depth in depths.items():
            backlog = self._tenants.get((pool, tenant))
            if backlog is not None:
                here = backlog.ready + backlog.parked
                waiting = depth - underway.get((pool, tenant), 0)
                backlog.depth = here if backlog.is_all_here else max(waiting, here)

    def ready(self, pool: PoolId, tenant: TenantId) -> int:
        backlog = self._tenants.get((pool, tenant))
        return backlog.ready if backlog else 0

    def awake(self) -> Iterator[tuple[PoolId, TenantId]]:
        """Every (pool, tenant) with jobs in its windows."""
        return (key for key, backlog in self._tenants.items() if backlog.ready)
