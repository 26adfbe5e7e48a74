"""The database's clock, as seen from here: it decides when things are due.

It is read with every renewal of ownership; between two readings it is carried on by the local
monotonic clock, so a wrong or jumping wall clock on this machine changes nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fairway.runtime.clock import Clock


class StoreClock:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read_us = clock.now_us()
        self._read_at = datetime.fromtimestamp(clock.unix_ms() / 1000, UTC)

    def was_read(self, moment: datetime, read_us: int) -> None:
        self._read_at, self._read_us = moment, read_us

    def now(self) -> datetime:
        return self.at_us(self._clock.now_us())

    def unix_ms(self) -> int:
        return int(self.now().timestamp() * 1000)

    def at_us(self, moment_us: int) -> datetime:
        """The database's time at a moment of the local monotonic clock."""
        return self._read_at + timedelta(microseconds=moment_us - self._read_us)
