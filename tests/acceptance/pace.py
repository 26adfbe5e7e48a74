"""How much slower than alone this machine is just now, so that a bound in seconds holds on any.

A little work is done again and again in a thread; the time it takes over the processor time it
costs tells how many others want the processors.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

BURST_SECONDS = 0.03  # longer than a turn of the scheduler: it meets who else wants to run
PAUSE_SECONDS = 0.3


class Pace:
    """`with Pace() as pace: …`, then `pace.slowdown`: 1.0 on a machine with nothing else to do."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._measure, name="pace", daemon=True)
        self.slowdown = 1.0

    def __enter__(self) -> Pace:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _measure(self) -> None:
        while not self._over.wait(PAUSE_SECONDS):
            began, worked = time.monotonic(), time.thread_time()
            while time.thread_time() - worked < BURST_SECONDS:
                pass
            self.slowdown = max(self.slowdown, (time.monotonic() - began) / BURST_SECONDS)
