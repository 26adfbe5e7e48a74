"""Whether processes can be started here: how long it has failed, and what pause is next.

A machine may be out of processes, memory or descriptors for a moment, so a start that failed is
tried again. One that fails for long is another matter: jobs must not wait for it.
"""

from __future__ import annotations

from fairway.core.backoff import backoff_seconds
from fairway.core.errors import InvalidRequest

PAUSE_FIRST_SECONDS = 0.1
PAUSE_MAX_SECONDS = 5.0
HAND_BACK_SECONDS = 10.0  # a job with a process to itself waits for it so long
HOPELESS_SECONDS = 30.0
APART_SECONDS = 2 * HAND_BACK_SECONDS  # failures further apart than this are not one trouble


class AppNotLoaded(InvalidRequest):
    """The app cannot be loaded, and trying again will not help."""


class StartFailures:
    def __init__(self) -> None:
        self._since = 0.0  # the first failure of those in a row
        self._last = float("-inf")

    def succeeded(self) -> None:
        self._last = float("-inf")

    def failed(self, now: float) -> None:
        if now - self._last > APART_SECONDS:
            self._since = now
        self._last = now

    def are_hopeless(self, now: float) -> bool:
        """Whether they have failed for so long, and nothing else."""
        return now - self._last <= APART_SECONDS and now - self._since >= HOPELESS_SECONDS


def pause_seconds(failures: int) -> float:
    """After so many failures in a row."""
    return backoff_seconds(PAUSE_FIRST_SECONDS, failures - 1, PAUSE_MAX_SECONDS)
