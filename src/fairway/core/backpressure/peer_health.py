"""Whether another server is asked: one that gave no answer is left alone for a while.

The rest grows with each failure in a row. When it is over one question is sent as a trial, and
nobody else asks until that is answered: a server that hangs costs few callers its time.
"""

from __future__ import annotations

REST_FIRST_US = 500_000
REST_MAX_US = 8_000_000


class PeerHealth:
    __slots__ = ("_failed_us", "_failures", "_rests_until_us")

    def __init__(self) -> None:
        self._failures = 0
        self._failed_us = 0
        self._rests_until_us = 0

    def is_resting(self, now_us: int) -> bool:
        return self._failures > 0 and now_us < self._rests_until_us

    def ask(self, now_us: int, answer_us: int) -> None:
        """A question goes out that takes at most so long; after a failure it is the only one."""
        if self._failures:
            self._rests_until_us = now_us + answer_us

    def answered(self) -> None:
        self._failures = 0

    def failed(self, now_us: int, asked_us: int) -> None:
        """Of questions that were under way together the first tells: the others are no news."""
        if self._failures and asked_us < self._failed_us:
            return
        self._failures += 1
        self._failed_us = now_us
        rest_us = REST_FIRST_US << min(self._failures - 1, 8)
        self._rests_until_us = now_us + min(rest_us, REST_MAX_US)
