"""Values over the last minutes: what a count grew by, and the mean of a value that swings.

A handful of marks each: one is kept for every so many-th part of the window. No clock.
"""

from __future__ import annotations

from collections import deque

MARKS = 60  # in a window


class _Marks:
    def __init__(self, seconds: float) -> None:
        self._window_us = round(seconds * 1_000_000)
        self._marks: deque[tuple[int, float]] = deque(maxlen=MARKS + 2)

    def note(self, value: float, now_us: int) -> None:
        """What lies closer to the last mark than marks are apart stands in no window."""
        if not self._marks or now_us - self._marks[-1][0] >= self._window_us // MARKS:
            self._marks.append((now_us, value))

    def _forget(self, before_us: int, keep: int) -> None:
        while len(self._marks) > keep and self._marks[keep][0] <= before_us:
            self._marks.popleft()


class RecentMean(_Marks):
    def mean(self, now_us: int) -> float | None:
        """None: nothing was noted of late."""
        self._forget(now_us - self._window_us, 0)
        values = [value for _, value in self._marks]
        return sum(values) / len(values) if values else None


class RecentGrowth(_Marks):
    """Of a count that only grows, and begins again at 0 with its process."""

    def grown(self, value: float, now_us: int) -> float:
        """Since the beginning of the window, or since the first look."""
        self.note(value, now_us)
        self._forget(now_us - self._window_us, 1)
        return max(value - self._marks[0][1], 0)
