"""Time that jumps from event to event: a clock and a line of things to do.

Events run in the order of their moments, those of one moment in the order in which they were asked
for, so that the same start leads to the same end. Time never goes back: what is asked for in the
past is done now. It knows nothing of jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

SECOND_US = 1_000_000
START_UNIX_MS = 1_700_000_000_000


class VirtualTime:
    """A `Clock` that only `run_until` moves."""

    def __init__(self) -> None:
        self._now_us = 0
        self._asked = 0
        self._line: list[tuple[int, int, Callable[[], None]]] = []

    def now_us(self) -> int:
        return self._now_us

    def unix_ms(self) -> int:
        return START_UNIX_MS + self._now_us // 1000

    @property
    def seconds(self) -> float:
        return self._now_us / SECOND_US

    def at(self, moment_us: int, act: Callable[[], None]) -> None:
        self._asked += 1
        heappush(self._line, (max(moment_us, self._now_us), self._asked, act))

    def after(self, pause_us: int, act: Callable[[], None]) -> None:
        self.at(self._now_us + pause_us, act)

    def every(self, pause_us: int, act: Callable[[], None]) -> None:
        """For as long as time goes on; the first time after one pause."""

        def again() -> None:
            act()
            self.after(pause_us, again)

        self.after(pause_us, again)

    def run_until(self, end_us: int) -> int:
        """All that is due before the end; answers how many events that were."""
        line, done = self._line, 0
        while line and line[0][0] < end_us:
            self._now_us, _, act = heappop(line)
            act()
            done += 1
        self._now_us = max(self._now_us, end_us)
        return done

    @property
    def waiting(self) -> int:
        """Events that are still to come."""
        return len(self._line)
