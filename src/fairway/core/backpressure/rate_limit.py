"""The token bucket that a tenant's submissions are paid from: integers only, `now` as an argument.

A bucket fills at the tenant's rate and holds its burst. A call for more jobs than the burst is let
in when the bucket is full and leaves it in debt, so no size of batch is refused for ever, and over
time nobody gets more than burst + rate x time, plus one such batch.
"""

from __future__ import annotations

from typing import NamedTuple

ONE = 1_000_000  # a token, in parts of a token that a rate of 1/s adds in a microsecond


class Quota(NamedTuple):
    """What a client may know of its rate limit: part of an answer, and of a refusal."""

    burst: int
    window_seconds: int  # in which an empty bucket fills
    left: int
    full_in_seconds: int


class Bucket:
    __slots__ = ("_filled_us", "_parts")

    def __init__(self, burst: int, now_us: int, level: int | None = None) -> None:
        """Full, or at a `level` in parts of a token."""
        self._parts = burst * ONE if level is None else level
        self._filled_us = now_us

    def level(self, rate_per_second: int, burst: int, now_us: int) -> int:
        """What is in it, in parts of a token; less than nothing when some are owed."""
        self._fill(rate_per_second, burst, now_us)
        return self._parts

    def take(self, count: int, rate_per_second: int, burst: int, now_us: int) -> int:
        """Take so many tokens: answers 0, or how many microseconds it is too early."""
        early_us = self.early_us(count, rate_per_second, burst, now_us)
        if not early_us:
            self._parts -= count * ONE
        return early_us

    def early_us(self, count: int, rate_per_second: int, burst: int, now_us: int) -> int:
        """How many microseconds it is too early to take so many; takes none."""
        self._fill(rate_per_second, burst, now_us)
        missing = min(count, burst) * ONE - self._parts
        return -(-missing // rate_per_second) if missing > 0 else 0

    def charge(self, count: int, rate_per_second: int, burst: int, now_us: int) -> None:
        """Take so many tokens, there or not: up to a burst is owed, or what was owed before."""
        self._fill(rate_per_second, burst, now_us)
        lowest = min(self._parts, -burst * ONE)
        self._parts = max(self._parts - count * ONE, lowest)

    def overdraw(self, count: int, rate_per_second: int, burst: int, now_us: int) -> int:
        """Take so many tokens unless some are owed: answers 0, or how long until none are.

        For what cannot wait or be sent again in parts: over time nobody gets more than by `take`.
        """
        debt_us = self.debt_us(rate_per_second, burst, now_us)
        if not debt_us:
            self._parts -= count * ONE
        return debt_us

    def debt_us(self, rate_per_second: int, burst: int, now_us: int) -> int:
        """How long until nothing is owed any more."""
        self._fill(rate_per_second, burst, now_us)
        return -(min(self._parts, 0) // rate_per_second)

    def quota(self, rate_per_second: int, burst: int, now_us: int) -> Quota:
        self._fill(rate_per_second, burst, now_us)
        return Quota(
            burst=burst,
            window_seconds=-(-burst // rate_per_second),
            left=max(self._parts, 0) // ONE,
            full_in_seconds=-(-(burst * ONE - self._parts) // (rate_per_second * ONE)),
        )

    def _fill(self, rate_per_second: int, burst: int, now_us: int) -> None:
        gained = max(now_us - self._filled_us, 0) * rate_per_second
        self._parts = min(self._parts + gained, burst * ONE)
        self._filled_us = max(now_us, self._filled_us)


def share_of(limit: int, servers: int) -> int:
    """One server's part of a limit that so many judge each for itself; never nothing."""
    return max(limit // servers, 1) if servers > 1 else limit
