"""Exponential backoff between tries, up to a longest pause. No clock, no chance.

Retries of jobs have pauses of their own, in rows that an operator can read (`core/failure/retry`).
"""

from __future__ import annotations

DOUBLINGS_MAX = 10  # a long outage must not outgrow a float


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
