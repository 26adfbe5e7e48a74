"""Things that are tried again and again: pauses between tries, and which failures are told.

Pauses grow exponentially, up to a longest one. No clock, no randomness.
Retries of jobs have pauses of their own, in rows that an operator can read (`core/failure/retry`).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

DOUBLINGS_MAX = 10  # a long outage must not outgrow a float
TOLD_AGAIN_US = 300_000_000  # as long as it lasts, so often
UNEXPLAINED_MIN = 2  # failures in a row until nobody else is awaited to tell of them
KINDS_MAX = 8  # told apart within one outage; whatever else comes waits for the next line


def backoff_seconds(first_seconds: float, doublings: int, longest_seconds: float) -> float:
    """The first pause, doubled so many times."""
    return min(first_seconds * 2.0 ** min(doublings, DOUBLINGS_MAX), longest_seconds)


def grown_ms(first_ms: int, factor: float, steps: int, longest_ms: int) -> int:
    """The first pause, grown by `factor` (at least 1) so many times; however many."""
    try:
        return round(min(first_ms * factor**steps, longest_ms))
    except OverflowError:
        return longest_ms


class RestartPauses:
    """How long to wait before a program that ended is started again.

    Pauses double from life to life; one that was long ends the row, for what ended it is probably
    another thing.
    """

    def __init__(self, first_seconds: float, longest_seconds: float, long_life_seconds: float):
        self._first_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._long_life_seconds = long_life_seconds
        self._short_lives = 0  # in a row

    def after(self, lived_seconds: float) -> float:
        is_long = lived_seconds >= self._long_life_seconds
        self._short_lives = 1 if is_long else self._short_lives + 1
        return backoff_seconds(self._first_seconds, self._short_lives - 1, self._longest_seconds)


class Over(NamedTuple):
    """An outage that is over."""

    failures: int
    seconds: float
    is_told_elsewhere: bool = False  # as it began, and not one of its failures was told here


class ToldElsewhere(Enum):
    """Whether what is behind a failure is told by somebody else, once for all that fail of it."""

    NO = auto()
    PERHAPS = auto()  # it is just being looked at
    YES = auto()


class Outage:
    """Failures in a row of one thing: which of them people are told of.

    The first one, the first of each further kind, and one every few minutes while it lasts; then
    that it is over, after how many. What is told elsewhere is told there alone: twenty loops that
    lose the database together are one line, not twenty. Whoever asks writes the line.
    """

    def __init__(self) -> None:
        self.failures = 0  # in a row
        self._since_us = 0
        self._told_us = 0
        self._kinds: set[str] = set()
        self._is_told_elsewhere = False
        self._unexplained = 0  # in a row

    def failed(self, kind: str, now_us: int, elsewhere: ToldElsewhere = ToldElsewhere.NO) -> bool:
        """Once more. Whether to tell of it."""
        self.failures += 1
        if self.failures == 1:
            self._since_us = now_us
        if elsewhere is ToldElsewhere.YES:
            self._is_told_elsewhere, self._unexplained = True, 0
            return False
        self._unexplained += 1
        if elsewhere is ToldElsewhere.PERHAPS and self._unexplained < UNEXPLAINED_MIN:
            return False
        is_new = kind not in self._kinds and len(self._kinds) < KINDS_MAX
        if is_new:
            self._kinds.add(kind)
        is_told = is_new or now_us - self._told_us >= TOLD_AGAIN_US
        if is_told:
            self._told_us = now_us
        return is_told

    def worked(self, now_us: int) -> Over | None:
        """What it ends, if anything."""
        if not self.failures:
            return None
        is_silent = self._is_told_elsewhere and not self._kinds
        over = Over(self.failures, (now_us - self._since_us) / 1e6, is_silent)
        self.failures = self._unexplained = 0
        self._is_told_elsewhere = False
        self._kinds.clear()
        return over
