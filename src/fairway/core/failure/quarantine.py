"""Quarantine of a job type that mostly fails, per tenant: its jobs get two tries, not five.

A job counts once: its first run if that failed by its own doing, or any success. Crashes, drains,
hand-backs, snoozes and failing dependencies are nobody's proof and never reach this file. It is
lifted when a few runs in a row go well, or by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairway.core.failure.sliding_window import SlidingCount
from fairway.core.run.outcome import FailureClass

#: Failures that are the job's own doing.
OWN_FAILURES = frozenset(
    {
        FailureClass.APP_ERROR,
        FailureClass.PERMANENT,
        FailureClass.TIMEOUT,
        FailureClass.RESOURCE,
        FailureClass.RUNAWAY,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineSettings:
    window_us: int = 3_600_000_000
    runs_min: int = 20
    failures_percent: int = 50  # more than this
    probe_successes: int = 5  # in a row: one lucky run of a type that fails by half is no proof


class Quarantine:
    __slots__ = ("_in_row", "_settings", "_window", "is_on")

    def __init__(self, settings: QuarantineSettings) -> None:
        self._settings = settings
        self._window = SlidingCount(settings.window_us)
        self._in_row = 0
        self.is_on = False

    def is_idle(self, now_us: int) -> bool:
        """Not on, and nothing left to remember."""
        self._window.slide(now_us)
        return not self.is_on and not self._window.bad

    def failed(self, now_us: int, *, is_first: bool) -> bool:
        """A run failed by its own doing; True when that puts the type into quarantine."""
        self._in_row = 0
        if self.is_on or not is_first:
            return False
        self._window.add(now_us, bad=1)
        seen = self._window.total
        if seen < self._settings.runs_min:
            return False
        self.is_on = self._window.bad * 100 > seen * self._settings.failures_percent
        return self.is_on

    def succeeded(self, now_us: int, count: int = 1) -> bool:
        """Runs went well; True when that lifts the quarantine."""
        if not self.is_on:
            self._window.add(now_us, good=count)
            return False
        self._in_row += count
        if self._in_row < self._settings.probe_successes:
            return False
        self.lift()
        return True

    def impose(self) -> None:
        """Another owner found it, or a person wants it."""
        self.is_on = True
        self._in_row = 0

    def lift(self) -> None:
        """Forgiven and forgotten: it takes as many runs as the first time to come back."""
        self.is_on = False
        self._in_row = 0
        self._window.clear()
