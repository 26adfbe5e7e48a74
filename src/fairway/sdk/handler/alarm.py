"""A time limit for plain functions that run in the main thread: the system's alarm.

The alarm raises in the middle of the function, and again every second if that is caught. It works
in the main thread only; elsewhere this does nothing, and whoever runs the job must limit it.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_SECONDS = 1.0


@contextmanager
def alarm(seconds: float | None, error: Exception) -> Iterator[None]:
    """Within this block, `error` is raised when the time is up."""
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    armed = False

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise error

    before = signal.signal(signal.SIGALRM, ring)
    began, left, every = time.monotonic(), 0.0, 0.0
    try:
        left, every = signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001), AGAIN_SECONDS)
        armed = True  # not before: whatever rings, all is given back
        yield
    finally:
        armed = False  # first: a signal that is on its way must find nobody
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # somebody waited for an alarm of their own
            signal.setitimer(
                signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.001), every
            )
