"""How much of a core the thread of this event loop uses: what others see before they give it more.

The time that the kernel counted for the thread, not what a clock showed: a machine that is busy
with something else makes nobody busy here. It decides nothing.
"""

from __future__ import annotations

import time

SMOOTHING = 0.5  # of each look; the rest is what was seen before


class ThreadBusy:
    """Of the thread that looks: a few looks reach back some seconds."""

    def __init__(self) -> None:
        self.per_mille = 0
        self._at, self._used = time.monotonic(), time.thread_time()

    def look(self) -> None:
        at, used = time.monotonic(), time.thread_time()
        if at > self._at:
            part = 1000 * (used - self._used) / (at - self._at)
            self.per_mille = round(SMOOTHING * part + (1 - SMOOTHING) * self.per_mille)
            self._at, self._used = at, used
