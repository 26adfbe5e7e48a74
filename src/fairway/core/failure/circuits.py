"""A circuit for one dependency of one job type: stops calls that would fail, and finds its return.

    closed ──half of the calls fail──▶ open ──rest over──▶ half_open ──probes succeed──▶ closed
                                        ▲                      │
                                        └────── one fails ─────┘

While it is open, jobs of the type are parked: they wait in their streams and nothing is counted
against them. Half open, a few of them go out as probes. The rest between two rounds of probes
doubles up to a bound, and is never shorter than the dependency asked for, within reason: one that
asks for more than an hour is asked again after an hour. Nothing here knows jobs: it counts ends,
and says how many may go.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fairway.core.failure.sliding_window import SlidingCount

SECOND_US = 1_000_000


class CircuitState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitSettings:
    window_us: int = 60 * SECOND_US
    calls_min: int = 10  # fewer calls in the window prove nothing
    failures_percent: int = 50
    rest_us: int = 5 * SECOND_US
    rest_max_us: int = 300 * SECOND_US
    retry_after_max_us: int = 3600 * SECOND_US  # whatever the dependency asks for
    probes: int = 3  # in one round; so many successes in a row close it


class CircuitRecord(NamedTuple):
    """What owners tell each other of a circuit that is not closed."""

    rest_us: int
    probe_in_us: int  # until the next round of probes


class Circuit:
    __slots__ = (
        "_settings",
        "_successes",
        "_window",
        "probe_at_us",
        "probes_left",
        "rest_us",
        "state",
    )

    def __init__(self, settings: CircuitSettings) -> None:
        self._settings = settings
        self._window = SlidingCount(settings.window_us)
        self._successes = 0
        self.state = CircuitState.CLOSED
        self.rest_us = 0
        self.probe_at_us = 0
        self.probes_left = 0

    @property
    def is_open(self) -> bool:
        """Whether jobs are held back, but for probes."""
        return self.state is not CircuitState.CLOSED

    def is_idle(self, now_us: int) -> bool:
        """Closed, and nothing left to remember."""
        self._window.slide(now_us)
        return not self.is_open and not self._window.bad

    def failed(self, now_us: int, retry_after_us: int = 0) -> bool:
        """A call failed; True when that opened the circuit."""
        retry_after_us = min(retry_after_us, self._settings.retry_after_max_us)
        if self.state is CircuitState.OPEN:
            # One that was under way when it opened: no news, unless it asks for more patience.
            self.probe_at_us = max(self.probe_at_us, now_us + retry_after_us)
            return False
        if self.state is CircuitState.HALF_OPEN:
            self._rest(now_us, min(self.rest_us * 2, self._settings.rest_max_us), retry_after_us)
            return False
        self._window.add(now_us, bad=1)
        seen = self._window.total
        if (
            seen < self._settings.calls_min
            or self._window.bad * 100 < seen * self._settings.failures_percent
        ):
            return False
        self._rest(now_us, self._settings.rest_us, retry_after_us)
        return True

    def succeeded(self, now_us: int, count: int = 1) -> bool:
        """Calls went well; True when that closed the circuit."""
        if self.state is CircuitState.CLOSED:
            self._window.add(now_us, good=count)
            return False
        if self.state is CircuitState.OPEN:
            return False  # began before it opened
        self._successes += count
        if self._successes < self._settings.probes:
            return False
        self.close()
        return True

    def is_due(self, now_us: int) -> bool:
        """Whether a round of probes may begin: the rest is over, or nobody answered the last."""
        return self.is_open and now_us >= self.probe_at_us

    def tick(self, now_us: int) -> bool:
        """True when a round of probes begins now."""
        if not self.is_due(now_us):
            return False
        self.state = CircuitState.HALF_OPEN
        self.probes_left = self._settings.probes
        self._successes = 0
        self.probe_at_us = now_us + self.rest_us
        return True

    def unsent(self, now_us: int) -> None:
        """The round that began had no probes after all: the next is soon, however long the rest.

        Unless an end was heard since, and a new rest began: that one stands.
        """
        if self.state is CircuitState.HALF_OPEN:
            self.probe_at_us = min(self.probe_at_us, now_us + self._settings.rest_us)

    def close(self) -> None:
        self.state = CircuitState.CLOSED
        self.probes_left = 0
        self._window.clear()

    def _rest(self, now_us: int, rest_us: int, retry_after_us: int) -> None:
        self.state = CircuitState.OPEN
        self.probes_left = 0
        self.rest_us = rest_us
        self.probe_at_us = now_us + max(rest_us, retry_after_us)

    # -- shared with other owners ------------------------------------------------------------

    def record(self, now_us: int) -> CircuitRecord:
        return CircuitRecord(self.rest_us, max(self.probe_at_us - now_us, 0))

    def restore(self, record: CircuitRecord, now_us: int) -> None:
        """Another owner found the dependency away."""
        self._rest(now_us, record.rest_us, 0)
        longest_us = max(record.rest_us, self._settings.retry_after_max_us)
        self.probe_at_us = now_us + min(record.probe_in_us, longest_us)
