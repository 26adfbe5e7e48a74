"""Streams: the queued jobs of one tenant in one pool and lane, of one type and priority, by id.

Within a lane, a job of higher priority goes first, and waiting makes up for priority: each step
of priority is worth `AGEING_MS` of waiting, so nothing waits for ever.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from fairway.core.ids import LOWEST_JOB_ID, id_before
from fairway.core.job import QueuedJob, due_ms_of

if TYPE_CHECKING:
    from fairway.core.backlog.lane_types import Leads
    from fairway.core.backlog.lanes import LaneShare

AGEING_MS = 60_000
FEW_STREAMS = 8  # are looked through as quickly as a heap is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLimits:
    jobs_total: int = 150_000
    bytes_total: int = 64 << 20
    jobs_per_stream: int = 4_000
    jobs_per_read: int = 400


class StreamKey(NamedTuple):
    tenant: int
    pool: int
    type: int
    priority: int
    lane: int = 0


def key_of(job: QueuedJob) -> StreamKey:
    return StreamKey(job.tenant, job.pool, job.type, job.priority, job.lane)


def is_same_stream(job: QueuedJob, other: QueuedJob) -> bool:
    return (
        job.tenant == other.tenant
        and job.type == other.type
        and job.pool == other.pool
        and job.priority == other.priority
        and job.lane == other.lane
    )


class Stream:
    """The head of a stream in memory, and how far it was read."""

    __slots__ = (
        "blocked", "cursor", "heavy", "key", "late", "look", "missed", "more", "reading",
        "rewound", "shard", "stayed", "type", "window",
    )  # fmt: skip

    def __init__(self, key: StreamKey, shard: int) -> None:
        self.key = key
        self.type = key.type  # at hand: it is asked for with every job that is taken
        self.shard = shard
        self.window: deque[QueuedJob] = deque()
        self.cursor: str = LOWEST_JOB_ID  # everything up to here was in the window once
        self.heavy = False  # its last read met jobs that must be read by bytes
        self.more = False  # the store may hold jobs past the cursor
        self.reading = False
        self.look = 0  # the number of its last read
        self.missed = False  # a job arrived that a read under way may not see
        self.rewound = False  # the cursor went back while a read was under way
        self.late: str | None = None  # a job before the cursor that came during a read
        self.stayed = False  # for a whole round, in a crowd
        self.blocked = False  # is held, or no worker runs its type: takes no memory

    def rewind(self) -> None:
        """Read it again from its head; what a read under way finds past that is out of turn."""
        self.cursor, self.rewound = LOWEST_JOB_ID, self.reading

    def look_back(self, first: str) -> None:
        """The store has a job this old that was never here: the next read brings it.

        A read under way is not for nothing: hints may come faster than reads end.
        """
        if self.reading:
            self.late = first if self.late is None else min(self.late, first)
        elif first <= self.cursor:
            self.cursor = id_before(first)

    def read_up_to(self, last: str | None) -> None:
        """A read has ended; `last` is the newest job it brought."""
        late, self.late = self.late, None
        if last is not None:
            self.cursor = last
        if late is not None and late <= self.cursor:
            self.cursor = id_before(late)


def first_of(streams: Iterable[Stream], types: Container[int]) -> Stream | None:
    """The stream whose head goes next among those a worker can run."""
    best: Stream | None = None
    best_rank = 0
    for stream in streams:
        if stream.window and stream.type in types:
            rank = _rank(stream)
            if best is None or rank < best_rank:
                best, best_rank = stream, rank
    return best


def _rank(stream: Stream) -> int:
    """Of the stream's head: the least goes first."""
    return due_ms_of(stream.window[0]) - stream.key.priority * AGEING_MS


class StreamGroup:
    """Streams by type: of thousands that nobody runs, a worker of three types looks at none."""

    __slots__ = ("_by_type", "_count")

    def __init__(self) -> None:
        self._by_type: dict[int, list[Stream]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Stream]:
        return chain.from_iterable(self._by_type.values())

    def add(self, stream: Stream) -> None:
        self._by_type.setdefault(stream.type, []).append(stream)
        self._count += 1

    def drop(self, stream: Stream) -> None:
        """Of one type there are as many as there are priorities, so looking for it is quick."""
        same = self._by_type[stream.type]
        same.remove(stream)
        self._count -= 1
        if not same:
            del self._by_type[stream.type]

    def has(self, type_: int) -> bool:
        return type_ in self._by_type

    def of_types(self, types: Collection[int]) -> Iterable[Stream]:
        """At least all of these types; who asks looks at the type as well."""
        if self._count <= FEW_STREAMS or len(types) >= len(self._by_type):
            return self
        found = (self._by_type.get(type_) for type_ in types)
        return chain.from_iterable(streams for streams in found if streams)


class Firsts:
    """`first_of` for one grant of many jobs: all streams of a group are looked at twice at most.

    While it is used, jobs only leave the windows, from their heads: so ranks only grow.
    """

    def __init__(self, types: Set[int]) -> None:
        self.types = types
        self.leads: dict[LaneShare, Leads | None] = {}  # of tenants with lanes
        self._heaps: dict[StreamGroup, list[tuple[int, int, Stream]] | None] = {}

    def of(self, group: StreamGroup) -> Stream | None:
        if len(group) <= FEW_STREAMS:
            return first_of(group, self.types)
        if group not in self._heaps:  # mostly one job is taken, and that is that
            self._heaps[group] = None
            return first_of(group.of_types(self.types), self.types)
        heap = self._heaps[group]
        if heap is None:
            heap = self._heaps[group] = [
                (_rank(stream), index, stream)
                for index, stream in enumerate(group.of_types(self.types))
                if stream.window and stream.type in self.types
            ]
            heapq.heapify(heap)
        return _top(heap)


def _top(heap: list[tuple[int, int, Stream]]) -> Stream | None:
    while heap:
        rank, index, stream = heap[0]
        if not stream.window:
            heapq.heappop(heap)
        elif (grown := _rank(stream)) != rank:
            heapq.heapreplace(heap, (grown, index, stream))
        else:
            return stream
    return None
