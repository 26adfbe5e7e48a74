"""Which streams want a read from the store, which may wait outside, and which reads are under way.

A read shows the store as it was a moment ago: what ended since must not come back through it.

A hundred thousand tenants may come at once that share one small slice of a pool. Those beyond the
next few hundred need no memory yet, and reading them all would hold up everybody else: they wait
outside, in the order they came, and are let in as others leave, and a few at a time besides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import NamedTuple

from fairway.core.backlog.streams import Stream, StreamKey
from fairway.core.backlog.windows import Windows
from fairway.core.ids import PoolId, TenantId
from fairway.core.job import QueuedJob

READ_JOBS_MIN = 16  # enough to be worth a read
READ_BYTES_MAX = 8 << 20  # of payloads in one answer: it is decoded at a stretch


class Budget(NamedTuple):
    """How much one read may bring of each stream, by bytes of payload."""

    each_bytes: int  # of one stream; its first job comes whatever it weighs
    light_bytes: int  # all jobs asked for may come if none is heavier than this


class Found(NamedTuple):
    """What a read brought of one stream."""

    jobs: list[QueuedJob]
    is_cut: bool = False  # there are more, left in the store for their weight


def budget_of(wishes: Sequence[tuple[Stream, int]], room_bytes: int) -> Budget:
    """An even part of what one answer, and the memory, have room for."""
    room_bytes = max(min(room_bytes, READ_BYTES_MAX), 0)
    each_bytes = max(room_bytes // max(len(wishes), 1), 1)
    most = max((limit for _, limit in wishes), default=1)
    return Budget(each_bytes, each_bytes // most)


class Reading:
    def __init__(self, windows: Windows, is_crowded: Callable[[PoolId], bool]) -> None:
        self._windows = windows
        self._is_crowded = is_crowded  # whether so many wait in a pool that more may wait outside
        # tenants whose streams are deferred while their pool is crowded
        self._deferrable: set[TenantId] = set()
        # By tenant, in the order they began to want a read; whose turn is next comes first.
        self._wanting: dict[TenantId, dict[StreamKey, Stream]] = {}
        self.wanting = 0  # how many want a read that need not wait outside
        # by pool, likewise
        self._deferred: dict[PoolId, dict[StreamKey, Stream]] = defaultdict(dict)
        self._looks: dict[int, None] = {}  # numbers of the reads under way, oldest first
        self._number = 0
        self._ended: dict[str, int] = {}  # job → number of the last read begun before it ended

    def __bool__(self) -> bool:
        """Whether somebody wants a read now."""
        return bool(self._wanting) or any(self._roomy())

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody waits outside."""
        return any(self._deferred.values())

    def _roomy(self) -> Iterator[dict[StreamKey, Stream]]:
        for pool, streams in self._deferred.items():
            if streams and not self._is_crowded(pool):
                yield streams

    def set_deferrable(
        self, tenant: TenantId, is_deferrable: bool, streams: Iterable[Stream]
    ) -> None:
        """Whether a tenant may wait outside; holds for what its streams want already, too."""
        if is_deferrable == (tenant in self._deferrable):
            return
        self._deferrable ^= {tenant}
        for stream in streams:
            if self.forget(stream):
                self.want(stream)

    @property
    def jobs_per_read(self) -> int:
        """An even part of the room for each that wants a read, and enough to be worth one."""
        limits = self._windows.limits
        part = (limits.jobs_total - self._windows.jobs_held) // (self.wanting + 1)
        return min(limits.jobs_per_read, max(part, READ_JOBS_MIN))

    @property
    def low(self) -> int:
        """A window with no more jobs than this wants a read."""
        return self.jobs_per_read // 4

    def want_more(self, stream: Stream) -> None:
        """If the store has more of a stream, and its window is low."""
        if stream.more and len(stream.window) <= self.low:
            self.want(stream)

    def want(self, stream: Stream) -> None:
        if stream.blocked or stream.reading:
            return
        key = stream.key
        if key.tenant not in self._deferrable:
            mine = self._wanting.setdefault(key.tenant, {})
            self.wanting += key not in mine
            mine[key] = stream
        elif len(stream.window) <= READ_JOBS_MIN // 4:
            self._deferred[key.pool][key] = stream

    def portion(self, stream: Stream, share: int) -> int:
        """How many jobs to read of a share that one stream could have."""
        return min(share, READ_JOBS_MIN) if stream.key.tenant in self._deferrable else share

    def forget(self, stream: Stream) -> bool:
        """Answers whether it wanted a read."""
        key = stream.key
        mine = self._wanting.get(key.tenant)
        if mine is None or mine.pop(key, None) is None:
            return self._deferred[key.pool].pop(key, None) is not None
        self.wanting -= 1
        if not mine:
            del self._wanting[key.tenant]
        return True

    def now_wanting(self) -> Iterator[Stream]:
        """Those that want a read now; to look at, not to begin."""
        groups = chain(self._wanting.values(), self._roomy())
        return chain.from_iterable(group.values() for group in groups)

    def begin(self, streams_max: int) -> list[Stream]:
        """Those that want a read; when there is none, some that wait outside a crowded pool."""
        found = self._in_turn(streams_max) if self else self._crowds(streams_max)
        chosen = list(islice(found, streams_max))
        for stream in chosen:
            self.start(stream)
        return chosen

    def _in_turn(self, streams_max: int) -> Iterator[Stream]:
        """Some of each tenant's, and tenants in turn: who has very many keeps nobody waiting."""
        each = -(-streams_max // max(len(self._wanting), 1))
        chosen: dict[StreamKey, Stream] = {}
        for tenant in list(islice(self._wanting, streams_max)):
            mine = self._wanting.pop(tenant)
            chosen |= islice(mine.items(), each)
            self._wanting[tenant] = mine  # behind the others
        rest = (stream for stream in self.now_wanting() if stream.key not in chosen)
        return chain(chosen.values(), rest)

    def _crowds(self, streams_max: int) -> Iterator[Stream]:
        """As many from outside each crowded pool: the crowd of one keeps nobody out of another."""
        crowds = [streams for streams in self._deferred.values() if streams]
        each = -(-streams_max // max(len(crowds), 1))
        return chain.from_iterable(islice(streams.values(), each) for streams in crowds)

    def start(self, stream: Stream) -> None:
        self.forget(stream)
        stream.look = self._begin()
        stream.reading, stream.missed, stream.rewound = True, False, False

    def over(self, stream: Stream) -> None:
        stream.reading = False
        self._finish(stream.look)

    @contextmanager
    def looking(self) -> Iterator[int]:
        """Rows that will come here are read otherwise: what ends meanwhile is remembered."""
        look = self._begin()
        try:
            yield look
        finally:
            self._finish(look)

    def _begin(self) -> int:
        self._number += 1
        self._looks[self._number] = None
        return self._number

    def _finish(self, look: int) -> None:
        self._looks.pop(look, None)
        if not self._looks:
            self._ended.clear()
            return
        oldest = next(iter(self._looks))
        while self._ended and next(iter(self._ended.values())) < oldest:
            del self._ended[next(iter(self._ended))]

    def ended(self, ids: Iterable[str]) -> None:
        if self._looks:
            self._ended.update(dict.fromkeys(ids, self._number))

    def ended_since(self, look: int, ids: set[str]) -> set[str]:
        """Those of the ids that ended after this read began: it may show them as they were."""
        ended = self._ended
        return {job_id for job_id in ids & ended.keys() if ended[job_id] >= look}

    def is_old_news(self, job_id: str) -> bool:
        return job_id in self._ended
