"""Hours, days and months that usage is told by. All are UTC's, and every hour is in one of each.

Usage is kept by the hour, so whatever asks for a time asks for whole hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

By: TypeAlias = Literal["hour", "day", "month"]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SLICE = timedelta(days=7)  # read by one statement
TURN = timedelta(days=31)  # read on one connection, before others have their turn
#: How much time may be asked about at once: so many periods at most come out of it.
SPAN_MAX: dict[By, timedelta] = {
    "hour": timedelta(days=31),
    "day": timedelta(days=400),
    "month": timedelta(days=400),
}
_MONTH = re.compile(r"(\d{4})-(\d{2})")
YEAR_MIN, YEAR_MAX = 2000, 2999


class Month(NamedTuple):
    """A month of UTC's, from its first hour to the first of the next."""

    year: int
    month: int

    @property
    def begins(self) -> datetime:
        return datetime(self.year, self.month, 1, tzinfo=UTC)

    @property
    def ends(self) -> datetime:
        return self.next.begins

    @property
    def next(self) -> Month:
        return Month(self.year + self.month // 12, self.month % 12 + 1)

    @property
    def first_day(self) -> date:
        return self.begins.date()

    def __str__(self) -> str:
        return f"{self.year:04}-{self.month:02}"


def month_of(moment: datetime) -> Month:
    there = moment.astimezone(UTC)
    return Month(there.year, there.month)


def parsed_month(text: str) -> Month | None:
    """`2026-11`; None for what is no month."""
    found = _MONTH.fullmatch(text)
    if found is None or not text.isascii():
        return None
    month = Month(int(found[1]), int(found[2]))
    is_one = YEAR_MIN <= month.year <= YEAR_MAX and 1 <= month.month <= 12
    return month if is_one else None


def is_whole_hour(moment: datetime) -> bool:
    there = moment.astimezone(UTC)
    return (there.minute, there.second, there.microsecond) == (0, 0, 0)


def begin_of(moment: datetime, by: By) -> datetime:
    """Of the period that the moment is in."""
    there = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if by == "hour":
        return there
    return there.replace(hour=0) if by == "day" else month_of(there).begins


def beginnings(since: datetime, before: datetime, by: By) -> list[datetime]:
    """Of every period that has a part in this time, in order."""
    found, moment = [], begin_of(since, by)
    while moment < before:
        found.append(moment)
        moment = (
            month_of(moment).ends if by == "month" else moment + (HOUR if by == "hour" else DAY)
        )
    return found


def slices(
    since: datetime, before: datetime, length: timedelta = SLICE
) -> Iterator[tuple[datetime, datetime]]:
    """A long time in parts that one statement each may read: no hour is in two of them."""
    while since < before:
        until = min(since + length, before)
        yield since, until
        since = until
