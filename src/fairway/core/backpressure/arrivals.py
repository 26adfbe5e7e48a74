"""Whether others are likely to come while one waits a moment for them.

How many came of late says that they may; whether they came to those that waited says that waiting
is what brings them together. A chain of jobs ends one after the other, each because the one before
was written: many a second, and none of them ever meets another. So whoever waited alone, twice in a
row, is followed by some that do not wait. Nothing here waits, or knows for what.
"""

from __future__ import annotations

WINDOW_US = 100_000  # in which those that come are counted
REST_US = 1_000_000  # nobody waits for so long after those that waited in vain
HOPED_FOR = 3.0  # met by those that wait first, until it is known
ALONE = 1.6  # on the average, so many or fewer: nobody else came


class Arrivals:
    def __init__(self, per_second_min: float) -> None:
        """With fewer a second nobody waits."""
        self._count_min = per_second_min * WINDOW_US / 1e6
        self._window = 0  # its number
        self._count = 0  # that came in it
        self._count_before = 0  # in the window right before
        self._met = HOPED_FOR
        self._rest_until_us = 0

    def came(self, count: int, now_us: int) -> None:
        self._turn_to(now_us // WINDOW_US)
        self._count += count

    def is_likely(self, now_us: int) -> bool:
        self._turn_to(now_us // WINDOW_US)
        return max(self._count, self._count_before) >= self._count_min and (
            now_us >= self._rest_until_us
        )

    def met(self, count: int, now_us: int) -> None:
        """So many went together, after they had waited for others."""
        self._met += (count - self._met) / 2
        if self._met < ALONE:
            self.rest(now_us)

    def rest(self, now_us: int) -> None:
        """Nobody waits for a while."""
        self._met = HOPED_FOR
        self._rest_until_us = now_us + REST_US

    def _turn_to(self, window: int) -> None:
        if window != self._window:
            self._count_before = self._count if window == self._window + 1 else 0
            self._window, self._count = window, 0
