"""Which stream goes next: a job of higher priority first, and waiting makes up for priority.

Each step of priority is worth `AGEING_MS` of waiting, so nothing waits for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from itertools import chain

from fairway.core.backlog.streams import Stream
from fairway.core.ids import TypeId
from fairway.core.job import due_ms_of

AGEING_MS = 60_000
FEW_STREAMS = 8  # are looked through as quickly as a heap is asked


def first_of(streams: Iterable[Stream], types: Container[TypeId]) -> Stream | None:
    """The stream whose head goes next among those a worker can run."""
    best: Stream | None = None
    best_rank = 0
    for stream in streams:
        if stream.window and stream.type in types:
            rank = rank_of(stream)
            if best is None or rank < best_rank:
                best, best_rank = stream, rank
    return best


def rank_of(stream: Stream) -> int:
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
