"""Which running jobs have used up their prepayment: a timer wheel without a clock.

Jobs are filed by the tick in which their prepayment ends, and handed out once when that tick has
passed. A finished job stays filed until then; the caller ignores it. Nothing is charged here.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")


class TimerWheel(Generic[Item]):
    """Buckets of one tick each; only buckets that hold something exist."""

    __slots__ = ("_buckets", "_last", "_last_due_us", "_tick_us", "_ticks", "next_us")

    def __init__(self, tick_us: int) -> None:
        self._tick_us = tick_us
        self._buckets: dict[int, list[Item]] = {}
        self._ticks: list[int] = []
        self._last_due_us = -1  # jobs granted together mostly fall due together
        self._last: list[Item] = []
        self.next_us = NEVER_US  # nothing is due before this

    def add(self, item: Item, due_us: int) -> None:
        if due_us != self._last_due_us:
            self._last_due_us = due_us
            self._last = self._bucket(due_us)
        self._last.append(item)

    def _bucket(self, due_us: int) -> list[Item]:
        # The tick after the one it falls in: when handed out, it is certainly due.
        tick = due_us // self._tick_us + 1
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._buckets[tick] = []
            heappush(self._ticks, tick)
            self.next_us = self._ticks[0] * self._tick_us
        return bucket

    def due(self, now_us: int) -> Iterator[list[Item]]:
        self._last_due_us = -1
        while now_us >= self.next_us:
            yield self._buckets.pop(heappop(self._ticks))
            self.next_us = self._ticks[0] * self._tick_us if self._ticks else NEVER_US


NEVER_US = 1 << 62
