"""Which streams want a read from the store, and which reads are under way.

A read shows the store as it was a moment ago: what ended since must not come back through it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from fairway.core.streams import Stream, StreamKey


class Reading:
    def __init__(self) -> None:
        self._wanting: dict[StreamKey, Stream] = {}  # in the order they began to want a read
        self._under_way = 0
        self._ended: set[str] = set()  # since the reads under way began: they may still show them

    def __bool__(self) -> bool:
        return bool(self._wanting)

    def want(self, stream: Stream) -> None:
        if not stream.reading:
            self._wanting[stream.key] = stream

    def forget(self, stream: Stream) -> None:
        self._wanting.pop(stream.key, None)

    def begin(self, streams_max: int) -> list[Stream]:
        chosen = list(islice(self._wanting.values(), streams_max))
        for stream in chosen:
            self.start(stream)
        return chosen

    def start(self, stream: Stream) -> None:
        self._wanting.pop(stream.key, None)
        self._under_way += 1
        stream.reading, stream.missed, stream.rewound = True, False, False

    def over(self, stream: Stream) -> None:
        stream.reading = False
        self._under_way -= 1
        if not self._under_way:
            self._ended.clear()

    def ended(self, ids: Iterable[str]) -> None:
        if self._under_way:
            self._ended.update(ids)

    def is_old_news(self, job_id: str) -> bool:
        return job_id in self._ended
