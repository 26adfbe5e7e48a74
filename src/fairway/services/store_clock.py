"""The database's clock, as seen from here: it decides when things are due, and dates new jobs.

It is read with every renewal of ownership; between two readings it is carried on by the local
monotonic clock, so a wrong or jumping wall clock on this machine changes nothing. It is a `Clock`
itself, for those whose dates must agree with the ids of jobs.
"""

from __future__ import annotations

from datetime import datetime

from fairway.core.unix_time import from_unix_us, to_unix_us
from fairway.runtime.clock import Clock


class StoreClock:
    def __init__(self, clock: Clock) -> None:
        self._own = clock
        self.now_us = clock.now_us  # monotonic: the same for all
        self._ahead_us = clock.unix_ms() * 1000 - clock.now_us()  # of the monotonic clock

    def was_read(self, moment: datetime, read_us: int) -> None:
        self._ahead_us = to_unix_us(moment) - read_us

    def now(self) -> datetime:
        return self.at_us(self.now_us())

    def unix_ms(self) -> int:
        return (self.now_us() + self._ahead_us) // 1000

    def at_us(self, moment_us: int) -> datetime:
        """The database's time at a moment of the local monotonic clock."""
        return from_unix_us(moment_us + self._ahead_us)

    @property
    def skew_seconds(self) -> float:
        """How far the database's clock is ahead of this machine's wall clock."""
        return self.ahead_seconds(self.now())

    def ahead_seconds(self, moment: datetime) -> float:
        """The same of a moment that the database has just told: it may have jumped since."""
        return (to_unix_us(moment) // 1000 - self._own.unix_ms()) / 1000
