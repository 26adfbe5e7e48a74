"""Moments as `datetime` and as whole milliseconds since 1970: the one place that turns them.

Exact, by whole numbers: a float of seconds is a millisecond off for some moments. What lies within
a millisecond belongs to it (rounded down). Knows no zone but UTC, and reads no clock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_MICROSECOND = timedelta(microseconds=1)


def to_unix_ms(moment: datetime) -> int:
    return (moment - EPOCH) // _MILLISECOND


def from_unix_ms(unix_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=unix_ms)


def to_unix_us(moment: datetime) -> int:
    return (moment - EPOCH) // _MICROSECOND


def from_unix_us(unix_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=unix_us)
