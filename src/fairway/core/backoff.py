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
