"""When the clocks of a zone change, by the year; found once and kept.

A year is looked at week by week and each change is closed in on by halves: some hundred questions
for a year that nobody asked about before, one look-up for any other. Two changes of a zone that
undo each other lie weeks apart in every rule since 1970 that is still asked about here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from fairway.core.scheduling.ticks import Steps

SECOND, WEEK, NONE = timedelta(seconds=1), timedelta(days=7), timedelta(0)
YEARS_KEPT = 5000  # of all zones together
YEAR_STEPS = 100  # what looking at a new year costs, in steps of the search for ticks


class OffsetChange(NamedTuple):
    moment: datetime
    before: timedelta  # offsets from UTC
    after: timedelta


_years: dict[tuple[str, int], tuple[OffsetChange, ...]] = {}


class ZoneChanges:
    def __init__(self, zone: str) -> None:
        self.name = zone
        self._zone = ZoneInfo(zone)

    def wall(self, moment: datetime) -> datetime:
        """What the clock on the wall shows."""
        return moment.astimezone(self._zone).replace(tzinfo=None)

    def offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self._zone).utcoffset() or NONE

    def first(self, low: datetime, high: datetime, steps: Steps) -> OffsetChange | None:
        """The first change in (low, high]."""
        for year in range(low.year, high.year + 1) if low < high else ():
            for change in self._year(year, steps):
                if low < change.moment <= high:
                    return change
        return None

    def newest(self, low: datetime, high: datetime, steps: Steps) -> OffsetChange | None:
        """The newest change in (low, high]."""
        for year in range(high.year, low.year - 1, -1) if low < high else ():
            for change in reversed(self._year(year, steps)):
                if low < change.moment <= high:
                    return change
        return None

    def _year(self, year: int, steps: Steps) -> tuple[OffsetChange, ...]:
        found = _years.get((self.name, year))
        if found is None:
            steps.spend(YEAR_STEPS)
            if len(_years) >= YEARS_KEPT:
                _years.clear()
            found = _years[self.name, year] = tuple(self._look_at(year))
        else:
            steps.spend()
        return found

    def _look_at(self, year: int) -> Iterator[OffsetChange]:
        low, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
        before = self.offset(low - SECOND)
        while low <= end:
            high = min(low + WEEK, end)
            while (after := self.offset(high)) != before:
                change = self._close_in(low - SECOND, high, before)
                yield OffsetChange(change, before, self.offset(change))
                low, before = change, self.offset(change)
                if after == before:
                    break
            low = high + SECOND

    def _close_in(self, low: datetime, high: datetime, before: timedelta) -> datetime:
        """The first second after `low` that has another offset."""
        while high - low > SECOND:
            middle = (low + (high - low) // 2).replace(microsecond=0)
            if self.offset(middle) == before:
                low = middle
            else:
                high = middle
        return high
