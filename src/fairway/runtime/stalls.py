"""Notices when the event loop does not turn: how late it comes to a beat that was due.

A request that holds the loop holds up every other one, and renewals with them. Lateness alone also
grows when the machine is busy with others; the processor time that the loop's own thread used since
the last beat tells the two apart, and holds whatever the load was.

To be woken costs more than a beat itself, and nothing is held up in a loop that computes nothing:
then beats are rare, and whatever begins to work says so (`stir`), so that the next one is near.
What works without having said so is noticed by the time that it computed.

And how busy the loop's thread is on the whole. Decides nothing about what follows from either.
"""

from __future__ import annotations

import asyncio
import math
import time
from typing import NamedTuple

from fairway.runtime.telemetry import Metrics, logger

log = logger("loop")

BEAT_SECONDS = 0.025
QUIET_SECONDS = 0.25  # between beats while nothing is computed
QUIET_BUSY_SECONDS = 0.001  # of processor time between two beats: as good as nothing
LOG_SECONDS = 0.25  # a stall this long is worth a line
WINDOW_SECONDS = 60.0


class Stall(NamedTuple):
    """How long the loop stood still, and what of that its own thread was computing."""

    late_seconds: float = 0.0
    busy_seconds: float = 0.0


class StallWatch:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._due = self._thread = self._window_ends = 0.0
        self._beat_seconds = BEAT_SECONDS
        self._timer: asyncio.TimerHandle | None = None
        self._windows = (Stall(), Stall())  # the present one and the one before
        metrics.stall_longest.set_function(lambda: self.longest().late_seconds)

    def start(self) -> None:
        """On the loop that is to be watched."""
        self._window_ends = time.monotonic() + WINDOW_SECONDS
        self._thread = time.thread_time()
        self._rest(BEAT_SECONDS)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def stir(self) -> None:
        """Something begins that may hold the loop: the next beat is near."""
        if self._beat_seconds == BEAT_SECONDS or self._timer is None:
            return
        if time.monotonic() < self._due:  # else it comes now, and is late
            self._timer.cancel()
            self._rest(BEAT_SECONDS)

    def longest(self) -> Stall:
        """The longest of the last minute or two."""
        now, before = self._windows
        return _worse(now, before)

    def forget(self) -> None:
        self._windows = (Stall(), Stall())

    def _rest(self, seconds: float) -> None:
        self._beat_seconds, self._due = seconds, time.monotonic() + seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._beat)

    def _beat(self) -> None:
        now, thread = time.monotonic(), time.thread_time()
        used, self._thread = thread - self._thread, thread
        busy = max(used - BEAT_SECONDS, 0.0)
        late = max(now - self._due, busy)
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
        self._rest(QUIET_SECONDS if used < QUIET_BUSY_SECONDS else BEAT_SECONDS)


def _worse(one: Stall, other: Stall) -> Stall:
    return Stall(*map(max, one, other))


class ThreadBusy:
    """How much of a core the thread that looks uses: others see it before they give it more.

    The time that the kernel counted for it, not what a clock showed: a machine that is busy with
    something else makes nobody busy here. What was seen before counts less and less.
    """

    def __init__(self, rise_seconds: float, fall_seconds: float | None = None) -> None:
        self._rise_seconds = rise_seconds
        self._fall_seconds = rise_seconds if fall_seconds is None else fall_seconds
        self._part = 0.0
        self._at, self._used = time.monotonic(), time.thread_time()

    @property
    def per_mille(self) -> int:
        return round(1000 * self._part)

    def look(self) -> None:
        at, used = time.monotonic(), time.thread_time()
        passed = at - self._at
        if passed <= 0:
            return
        part = (used - self._used) / passed
        memory_seconds = self._rise_seconds if part > self._part else self._fall_seconds
        self._part += (part - self._part) * -math.expm1(-passed / memory_seconds)
        self._at, self._used = at, used
