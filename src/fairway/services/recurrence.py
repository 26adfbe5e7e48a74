"""Where ticks come from: cron expressions in a zone, and intervals. The only file that knows cron.

Two kinds of expression, two rules for the hours that clocks skip or repeat (those of Debian's cron,
also for expressions with seconds):

*   Hour and minute are named (`30 2 * * *`): wall-clock time. A time that clocks skip runs once, at
    the moment they go on; one that they repeat runs once, the first time.
*   Hour or minute begins with `*` (`*/15 * * * *`): real time. It runs in every hour there is,
    twice in one that is repeated, never in one that is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice, pairwise
from typing import Protocol
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from fairway.core.errors import InvalidRequest
from fairway.core.ticks import Every

CRON_LENGTH_MAX = 200
GAPS_LOOKED_AT = 100
ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, DAY, NONE = timedelta(seconds=1), timedelta(days=1), timedelta(0)


class Recurrence(Protocol):
    """Ticks in milliseconds since 1970."""

    def after(self, moment_ms: int) -> Iterator[int]:
        """Ticks after a moment, oldest first."""

    def until(self, moment_ms: int) -> Iterator[int]:
        """Ticks up to a moment, newest first."""

    @property
    def text(self) -> str: ...


class Cron:
    def __init__(self, expression: str, zone: str) -> None:
        self._expression = expression
        self._zone = ZoneInfo(zone)
        self._zone_name = zone
        *_, minute, hour, _day, _month, _weekday = expression.split()
        self._is_wall_clock = not (minute.startswith("*") or hour.startswith("*"))

    def after(self, moment_ms: int) -> Iterator[int]:
        moment, last = _moment(moment_ms), moment_ms
        for tick in self._by_wall(moment) if self._is_wall_clock else self._by_time(moment):
            if tick > last:  # skipped times may meet at the moment when clocks go on
                last = tick
                yield tick

    def until(self, moment_ms: int) -> Iterator[int]:
        moment, last = _moment(moment_ms), moment_ms + 1
        ticks = self._by_wall_back if self._is_wall_clock else self._by_time_back
        for tick in ticks(moment):
            if tick < last:
                last = tick
                yield tick

    # -- wall-clock time -----------------------------------------------------------------------

    def _by_wall(self, moment: datetime) -> Iterator[int]:
        for wall in CronSim(self._expression, self._wall(moment)):
            yield _unix_ms(self._first_shown(wall))

    def _by_wall_back(self, moment: datetime) -> Iterator[int]:
        # Clocks that were put back within the last day have shown later times than they show now.
        put_back = max(self._offset(moment - DAY) - self._offset(moment), NONE)
        for wall in CronSim(self._expression, self._wall(moment) + put_back + SECOND, reverse=True):
            yield _unix_ms(self._first_shown(wall))

    def _first_shown(self, wall: datetime) -> datetime:
        """The first moment at which clocks show this time, or have gone past it."""
        one, other = (wall.replace(tzinfo=self._zone, fold=n).astimezone(UTC) for n in (0, 1))
        if self._wall(one) == wall:
            return one
        return self._change_between(min(one, other), max(one, other)) or one

    # -- real time -----------------------------------------------------------------------------

    def _by_time(self, moment: datetime) -> Iterator[int]:
        """From one change of the clocks to the next, each stretch by its own offset."""
        start, includes_start = moment, False
        while True:
            offset, here = self._offset(start), start
            wall_start = self._wall(start) - (SECOND if includes_start else NONE)
            for wall in CronSim(self._expression, wall_start):
                tick = (wall - offset).replace(tzinfo=UTC)
                change = self._change_between(here, tick)
                if change is not None:
                    start, includes_start = change, True
                    break
                yield _unix_ms(tick)
                here = tick
            else:
                return  # never again

    def _by_time_back(self, moment: datetime) -> Iterator[int]:
        start = moment
        while True:
            offset, here = self._offset(start), start
            for wall in CronSim(self._expression, self._wall(start) + SECOND, reverse=True):
                tick = (wall - offset).replace(tzinfo=UTC)
                change = self._change_between(tick, here, newest=True)
                if change is not None:
                    start = change - SECOND
                    break
                yield _unix_ms(tick)
                here = min(tick, here)
            else:
                return

    # -- changes of the clocks -----------------------------------------------------------------

    def _wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone).replace(tzinfo=None)

    def _offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self._zone).utcoffset() or NONE

    def _change_between(
        self, low: datetime, high: datetime, *, newest: bool = False
    ) -> datetime | None:
        """The first (or newest) moment in (low, high] from which another offset holds."""
        low, high = low.replace(microsecond=0), high.replace(microsecond=0)
        if self._zone_name == "UTC" or low >= high:
            return None
        steps = range((high - low) // DAY + 1)
        for step in reversed(steps) if newest else steps:
            begin, end = low + DAY * step, min(low + DAY * (step + 1), high)
            if self._offset(begin) != self._offset(end):
                return self._bisect(begin, end)
        return None

    def _bisect(self, low: datetime, high: datetime) -> datetime:
        before = self._offset(low)
        while high - low > SECOND:
            middle = (low + (high - low) // 2).replace(microsecond=0)
            if self._offset(middle) == before:
                low = middle
            else:
                high = middle
        return high

    @property
    def text(self) -> str:
        """In English, as `At 09:00 on Monday through Friday (Europe/Lisbon)`."""
        words = CronSim(self._expression, ANY_TIME).explain()
        return f"{words} ({self._zone_name})"


def recurrence_of(
    *, cron: str | None, every_ms: int | None, zone: str, anchor_ms: int
) -> Recurrence:
    """Of a schedule that was checked before."""
    if cron is not None:
        return Cron(cron, zone)
    assert every_ms is not None
    return Every(every_ms, anchor_ms)


def checked(
    *, cron: str | None, every_ms: int | None, zone: str, now_ms: int, gap_ms_min: int
) -> Recurrence:
    """The recurrence of a new schedule; refuses what never comes, comes too often or is no cron."""
    if zone not in _zones():
        raise InvalidRequest(
            f"There is no time zone {zone[:64]!r}; use a name such as Europe/Lisbon or UTC.",
            field="/timezone",
        )
    if (cron is None) == (every_ms is None):
        raise InvalidRequest("Give cron or every_seconds, one of them.", field="/cron")
    field = "/cron" if cron is not None else "/every_seconds"
    found = _parsed(cron, zone) if cron is not None else Every(every_ms or 0, now_ms)
    ticks = list(islice(found.after(now_ms), GAPS_LOOKED_AT))
    if not ticks:
        raise InvalidRequest("This never comes: there is no such date.", field=field)
    if any(later - tick < gap_ms_min for tick, later in pairwise(ticks)):
        raise InvalidRequest(
            f"This comes too often: ticks must be at least {gap_ms_min / 1000:g} s apart.",
            field=field,
        )
    return found


@cache
def _zones() -> set[str]:
    return available_timezones()


def _parsed(cron: str, zone: str) -> Cron:
    try:
        if len(cron) > CRON_LENGTH_MAX:
            raise CronSimError(f"more than {CRON_LENGTH_MAX} characters")
        CronSim(cron, ANY_TIME)  # only to be told what is wrong with it
    except (CronSimError, ValueError, AssertionError) as error:
        raise InvalidRequest(
            f"{cron[:64]!r} is no cron expression ({error}): write minute, hour, day of month,"
            " month and day of week, with seconds before them if you like.",
            field="/cron",
        ) from None
    return Cron(cron, zone)


def _moment(unix_ms: int) -> datetime:
    return datetime.fromtimestamp(unix_ms / 1000, UTC)


def _unix_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
