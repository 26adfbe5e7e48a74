"""A time limit for plain functions that run in the main thread: the system's alarm.

The alarm raises in the middle of the function, and again every second if that is caught. A word
before it, the soft limit, is raised once. It works in the main thread only; elsewhere this does
nothing, and whoever runs the job must limit it.
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
def alarm(
    seconds: float | None, error: Exception, soft: tuple[float, Exception] | None = None
) -> Iterator[None]:
    """Within this block, `error` is raised when the time is up, and `soft` at its own before."""
    if soft is not None and seconds is not None and soft[0] >= seconds:
        soft = None
    first = seconds if soft is None else soft[0]
    if first is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    armed, is_warned = False, soft is None
    again = AGAIN_SECONDS
    if soft is not None:
        again = 0.0 if seconds is None else seconds - soft[0]  # the second ring is the limit's

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal is_warned
        if not armed:
            return
        if soft is not None and not is_warned:
            is_warned = True
            raise soft[1]
        if again != AGAIN_SECONDS:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS, AGAIN_SECONDS)
        raise error

    before = signal.signal(signal.SIGALRM, ring)
    began, left, every = time.monotonic(), 0.0, 0.0
    try:
        left, every = signal.setitimer(signal.ITIMER_REAL, max(first, 0.001), again)
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
