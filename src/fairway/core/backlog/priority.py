"""Which stream goes next: a job of higher priority first, and waiting makes up for priority.

Each step of priority is worth `AGEING_MS` of waiting, so nothing waits for ever.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Container, Iterable, Iterator, Set
from itertools import chain
from typing import TYPE_CHECKING

from fairway.core.backlog.streams import Stream
from fairway.core.ids import TypeId
from fairway.core.job import due_ms_of

if TYPE_CHECKING:
    from fairway.core.backlog.lane_types import Leads
    from fairway.core.backlog.lanes import LaneShare

AGEING_MS = 60_000
FEW_STREAMS = 8  # are looked through as quickly as a heap is asked


def first_of(streams: Iterable[Stream], types: Container[TypeId]) -> Stream | None:
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
        self._by_type: dict[TypeId, list[Stream]] = {}
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

    def has(self, type_: TypeId) -> bool:
        return type_ in self._by_type

    def of_types(self, types: Collection[TypeId]) -> Iterable[Stream]:
        """At least all of these types; who asks looks at the type as well."""
        if self._count <= FEW_STREAMS or len(types) >= len(self._by_type):
            return self
        found = (self._by_type.get(type_) for type_ in types)
        return chain.from_iterable(streams for streams in found if streams)


class Firsts:
    """`first_of` for one grant of many jobs: all streams of a group are looked at twice at most.

    While it is used, jobs only leave the windows, from their heads: so ranks only grow.
    """

    def __init__(self, types: Set[TypeId]) -> None:
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
