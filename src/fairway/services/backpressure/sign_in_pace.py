"""Sign-ins, counted by whose they are: each is written down twice, and one at a time is.

A tenant has some at once and one a second; so has each operator's key. Who keeps signing in fills
neither the line that everybody stands in nor the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from fairway.core.backpressure.rate_limit import Bucket
from fairway.core.errors import LimitReached

SIGN_INS_AT_ONCE = 100
SIGN_INS_PER_SECOND = 1
OWNERS_MAX = 10_000


class SignInPace:
    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._buckets: dict[Hashable, Bucket] = {}  # who signed in last is the last one

    def take(self, owner: Hashable) -> None:
        """One more of this owner's, or it is told when to come back."""
        now_us = self._now_us()
        bucket = self._buckets.pop(owner, None) or Bucket(SIGN_INS_AT_ONCE, now_us)
        self._buckets[owner] = bucket
        if len(self._buckets) > OWNERS_MAX:
            del self._buckets[next(iter(self._buckets))]
        if early_us := bucket.take(1, SIGN_INS_PER_SECOND, SIGN_INS_AT_ONCE, now_us):
            raise LimitReached(
                f"Sign-ins of yours: {SIGN_INS_AT_ONCE} at once, then one a second.",
                code="TOO_MANY_SIGN_INS",
                retry_after_seconds=early_us / 1e6,
            )
