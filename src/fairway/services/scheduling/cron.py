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
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from itertools import islice, pairwise
from typing import Protocol
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from fairway.core.errors import InvalidRequest
from fairway.core.scheduling.ticks import Every, Steps, while_affordable
from fairway.core.unix_time import from_unix_ms, to_unix_ms
from fairway.services.scheduling.tick_cache import TICKS_MAX, KnownTicks
from fairway.services.scheduling.zone_changes import ZoneChanges

CRON_LENGTH_MAX = 200
GAPS_LOOKED_AT = 100
MONTH_STEPS = 6  # what going to the next month that fits costs
ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, DAY, NONE = timedelta(seconds=1), timedelta(days=1), timedelta(0)


_known = KnownTicks()


class Recurrence(Protocol):
    """Ticks in milliseconds since 1970. A search that costs too much raises `TooManySteps`."""

    def after(self, moment_ms: int, steps: Steps | None = None) -> Iterator[int]:
        """Ticks after a moment, oldest first."""

    def until(self, moment_ms: int, steps: Steps | None = None) -> Iterator[int]:
        """Ticks up to a moment, newest first."""

    @property
    def text(self) -> str: ...


class _CountedSim(CronSim):
    """Times that an expression names, each step of the search paid for."""

    def __init__(self, expression: str, wall: datetime, steps: Steps, *, reverse: bool) -> None:
        self._steps = steps
        super().__init__(expression, wall, reverse)

    def tick(self, seconds: int = 1) -> None:
        self._steps.spend()
        super().tick(seconds)

    def match_day(self, d: date) -> bool:
        self._steps.spend()
        return super().match_day(d)

    def advance_month(self) -> None:
        if self.dt.month not in self.months:
            self._steps.spend(MONTH_STEPS)
            super().advance_month()

    def reverse_month(self) -> None:
        if self.dt.month not in self.months:
            self._steps.spend(MONTH_STEPS)
            super().reverse_month()


class Cron:
    def __init__(self, expression: str, zone: str) -> None:
        self._expression = expression
        self._zone = ZoneInfo(zone)
        self._clocks = ZoneChanges(zone)
        *_, minute, hour, _day, _month, _weekday = expression.split()
        self._is_wall_clock = not (minute.startswith("*") or hour.startswith("*"))

    def after(self, moment_ms: int, steps: Steps | None = None) -> Iterator[int]:
        """Those that were found before need no search; what is found now is kept for the next."""
        name, steps = (self._expression, self._clocks.name), steps or Steps()
        known = _known.after(*name, moment_ms)
        for tick in known:
            steps.spend()
            yield tick
        found = list(known)
        try:
            for tick in self._search(known[-1] if known else moment_ms, steps):
                if len(found) < TICKS_MAX:
                    found.append(tick)
                yield tick
        finally:
            _known.learn(*name, moment_ms, found)

    def _search(self, moment_ms: int, steps: Steps) -> Iterator[int]:
        moment, last = from_unix_ms(moment_ms), moment_ms
        ticks = self._by_wall if self._is_wall_clock else self._by_time
        try:
            for tick in ticks(moment, steps):
                steps.spend()
                if tick > last:  # skipped times may meet at the moment when clocks go on
                    last = tick
                    yield tick
        except OverflowError:
            return  # the calendar ends with the year 9999

    def until(self, moment_ms: int, steps: Steps | None = None) -> Iterator[int]:
        moment, last, steps = from_unix_ms(moment_ms), moment_ms + 1, steps or Steps()
        ticks = self._by_wall_back if self._is_wall_clock else self._by_time_back
        try:
            for tick in ticks(moment, steps):
                steps.spend()
                if tick < last:
                    last = tick
                    yield tick
        except OverflowError:
            return

    def _times(self, wall: datetime, steps: Steps, *, reverse: bool = False) -> Iterator[datetime]:
        return _CountedSim(self._expression, wall, steps, reverse=reverse)

    # -- wall-clock time -----------------------------------------------------------------------

    def _by_wall(self, moment: datetime, steps: Steps) -> Iterator[int]:
        for wall in self._times(self._clocks.wall(moment), steps):
            yield to_unix_ms(self._first_shown(wall, steps))

    def _by_wall_back(self, moment: datetime, steps: Steps) -> Iterator[int]:
        # Clocks that were put back within the last day have shown later times than they show now.
        clocks = self._clocks
        put_back = max(clocks.offset(moment - DAY) - clocks.offset(moment), NONE)
        start = clocks.wall(moment) + put_back + SECOND
        for wall in self._times(start, steps, reverse=True):
            yield to_unix_ms(self._first_shown(wall, steps))

    def _first_shown(self, wall: datetime, steps: Steps) -> datetime:
        """The first moment at which clocks show this time, or have gone past it."""
        one, other = (wall.replace(tzinfo=self._zone, fold=n).astimezone(UTC) for n in (0, 1))
        if self._clocks.wall(one) == wall:
            return one
        change = self._clocks.first(min(one, other), max(one, other), steps)
        return change.moment if change else one

    # -- real time -----------------------------------------------------------------------------

    def _by_time(self, moment: datetime, steps: Steps) -> Iterator[int]:
        """By the offset in force. A change of the clocks on the way to the next time matters only
        if that time is skipped, or if times already passed are shown once more."""
        clocks, here = self._clocks, moment
        offset, passed = clocks.offset(moment), clocks.wall(moment)
        times = self._times(passed, steps)
        while (wall := next(times, None)) is not None:
            while change := clocks.first(here, _utc(wall - offset), steps):
                here, offset = change.moment, change.after
                shown = _naive(here + offset)
                if shown <= passed or shown > wall:
                    passed = shown - SECOND
                    times = self._times(passed, steps)
                    wall = next(times, None)
                    if wall is None:
                        return
            here, passed = _utc(wall - offset), wall
            yield to_unix_ms(here)

    def _by_time_back(self, moment: datetime, steps: Steps) -> Iterator[int]:
        clocks, here = self._clocks, moment
        offset, passed = clocks.offset(moment), clocks.wall(moment) + SECOND
        times = self._times(passed, steps, reverse=True)
        while (wall := next(times, None)) is not None:
            while change := clocks.newest(_utc(wall - offset), here, steps):
                here, offset = change.moment - SECOND, change.before
                end = _naive(change.moment + offset)
                if end > passed or end <= wall:
                    passed = end
                    times = self._times(passed, steps, reverse=True)
                    wall = next(times, None)
                    if wall is None:
                        return
            tick = _utc(wall - offset)
            here, passed = min(tick, here), wall
            yield to_unix_ms(tick)

    @property
    def text(self) -> str:
        """In English, as `At 09:00 on Monday through Friday (Europe/Lisbon)`."""
        return f"{_in_words(self._expression)} ({self._clocks.name})"


@lru_cache(maxsize=1000)
def _in_words(expression: str) -> str:
    return CronSim(expression, ANY_TIME).explain()


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
    ticks = list(islice(while_affordable(found.after(now_ms)), GAPS_LOOKED_AT))
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


def _utc(naive: datetime) -> datetime:
    return naive.replace(tzinfo=UTC)


def _naive(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)
