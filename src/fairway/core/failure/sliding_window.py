"""Counts of good and bad events over a window that slides: the last so many microseconds.

The window is cut into buckets, so it is right to within one bucket and costs the same however much
happens. Time is handed in and may stand still; going backwards counts as standing still.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

BUCKETS = 30


@dataclass(slots=True)
class _Bucket:
    tick: int
    good: int = 0
    bad: int = 0


class SlidingCount:
    __slots__ = ("_bucket_us", "_buckets", "bad", "good")

    def __init__(self, window_us: int) -> None:
        self._bucket_us = max(window_us // BUCKETS, 1)
        self._buckets: deque[_Bucket] = deque()
        self.good = 0
        self.bad = 0

    @property
    def total(self) -> int:
        return self.good + self.bad

    def add(self, now_us: int, *, good: int = 0, bad: int = 0) -> None:
        self.slide(now_us)
        tick = now_us // self._bucket_us
        if not self._buckets or self._buckets[-1].tick < tick:
            self._buckets.append(_Bucket(tick))
        last = self._buckets[-1]
        last.good += good
        last.bad += bad
        self.good += good
        self.bad += bad

    def slide(self, now_us: int) -> None:
        """Forget what has left the window."""
        oldest = now_us // self._bucket_us - BUCKETS
        while self._buckets and self._buckets[0].tick <= oldest:
            gone = self._buckets.popleft()
            self.good -= gone.good
            self.bad -= gone.bad

    def clear(self) -> None:
        self._buckets.clear()
        self.good = self.bad = 0
