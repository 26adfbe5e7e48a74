"""The one place that reads clocks. Everything else takes `now` as an argument."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_us(self) -> int:
        """Monotonic microseconds: for spans, never for dates."""

    def unix_ms(self) -> int:
        """Wall-clock milliseconds: for people; ids and dates of jobs follow the store's."""


class SystemClock:
    def now_us(self) -> int:
        return time.monotonic_ns() // 1000

    def unix_ms(self) -> int:
        return time.time_ns() // 1_000_000


class ManualClock:
    """Time that moves only when told to."""

    def __init__(self, unix_ms: int = 1_700_000_000_000) -> None:
        self._us = 0
        self._start_ms = unix_ms

    def advance(self, seconds: float) -> None:
        self._us += round(seconds * 1_000_000)

    def now_us(self) -> int:
        return self._us

    def unix_ms(self) -> int:
        return self._start_ms + self._us // 1000
