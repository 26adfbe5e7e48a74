"""Who watches is told one after the other: all hear of something newer in the same moment.

Between them others have their turn, and however many look, so many are told in a second at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

PING_SECONDS = 15.0
APART_US = 20_000  # between streams that are told something: fifty a second
ROUND_US = 5_000_000  # in which all are told, however many: pages take silence for a lost server


class OneByOne:
    """When each of many may go on who were woken at once."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._next_us = 0
        self._members = 0

    @contextmanager
    def member(self) -> Iterator[None]:
        """One of those who are woken, for as long as it is there."""
        self._members += 1
        try:
            yield
        finally:
            self._members -= 1

    def wait_us(self) -> int:
        """For whoever asks now; the next that asks waits for longer."""
        now_us = self._now_us()
        turn_us = max(self._next_us, now_us)
        self._next_us = turn_us + min(APART_US, ROUND_US // max(self._members, 1))
        return turn_us - now_us
