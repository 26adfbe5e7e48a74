"""Notices when the event loop does not turn: how late it comes to a beat that was due.

A request that holds the loop holds up every other one, and renewals with them. Lateness alone also
grows when the machine is busy with others; the processor time that the loop's own thread used since
the last beat tells the two apart, and holds whatever the load was.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

from fairway.runtime.telemetry import Metrics, logger

log = logger("loop")

BEAT_SECONDS = 0.025
LOG_SECONDS = 0.25  # a stall this long is worth a line
WINDOW_SECONDS = 60.0


class Stall(NamedTuple):
    """How long the loop stood still, and what of that its own thread was computing."""

    late_seconds: float = 0.0
    busy_seconds: float = 0.0


class StallWatch:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._due = self._busy = self._window_ends = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._windows = (Stall(), Stall())  # the present one and the one before
        metrics.stall_longest.set_function(lambda: self.longest().late_seconds)

    def start(self) -> None:
        """On the loop that is to be watched."""
        self._window_ends = time.monotonic() + WINDOW_SECONDS
        self._rest()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def longest(self) -> Stall:
        """The longest of the last minute or two."""
        now, before = self._windows
        return _worse(now, before)

    def forget(self) -> None:
        self._windows = (Stall(), Stall())

    def _rest(self) -> None:
        self._due, self._busy = time.monotonic() + BEAT_SECONDS, time.thread_time()
        self._timer = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._beat)

    def _beat(self) -> None:
        now = time.monotonic()
        late = max(now - self._due, 0.0)
        busy = max(time.thread_time() - self._busy - BEAT_SECONDS, 0.0)
        self._metrics.stalls.observe(late)
        present, before = self._windows
        if now > self._window_ends:
            self._window_ends = now + WINDOW_SECONDS
            present, before = self._windows = (Stall(), present)
        if late > present.late_seconds or busy > present.busy_seconds:  # few are: 40 a second come
            self._windows = (_worse(present, Stall(late, busy)), before)
        if late > LOG_SECONDS:
            log.warning(
                "event loop stood still", seconds=round(late, 3), computing_seconds=round(busy, 3)
            )
        self._rest()


def _worse(one: Stall, other: Stall) -> Stall:
    return Stall(*map(max, one, other))
