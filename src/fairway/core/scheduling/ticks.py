"""Recurring schedules: which ticks fire, which are made up for, and what overlap does to them.

A tick is a moment in whole milliseconds since 1970; it is also the identity of a run. Where ticks
come from (cron, zones) is not known here: they are handed in, newest first or oldest first, and
only as many as are needed are taken. Nothing here grows with the length of an outage.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from fairway.core.errors import InvalidRequest

ON_TIME_MS = 15_000  # a tick is missed when it is later than this: a failover takes less
CATCH_UP_MAX = 100  # ticks that are made up for after one outage, whatever the window
COUNT_MAX = 1000  # missed ticks are counted up to here
STEPS_MAX = 10_000  # of one search for ticks: some 15 ms


class TooManySteps(InvalidRequest):
    """This comes so rarely that its next ticks cannot be worked out; name more days or months."""


class Steps:
    """What a search for ticks may cost. Looking at a day, an hour or a minute is a step."""

    __slots__ = ("left",)

    def __init__(self, left: int = STEPS_MAX) -> None:
        self.left = left

    def spend(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise TooManySteps(field="/cron")


def while_affordable(ticks: Iterable[int]) -> Iterator[int]:
    """These ticks, for as long as the search may go on; one must be found."""
    found = False
    try:
        for tick in ticks:
            found = True
            yield tick
    except TooManySteps:
        if not found:
            raise


class Overlap(IntEnum):
    """What a tick does while the run before it is not over."""

    ALLOW = 0  # run beside it
    SKIP = 1  # do not run
    QUEUE_ONE = 2  # wait for it; one waits, later ones are skipped
    CANCEL_RUNNING = 3  # ask it to stop, and run when it has

    @property
    def label(self) -> str:
        return self.name.lower()


class CatchUp(IntEnum):
    """What becomes of ticks that were missed, because nobody was there to fire them."""

    NONE = 0
    LAST = 1  # only the newest of them runs
    ALL = 2  # all within the window, up to a number

    @property
    def label(self) -> str:
        return self.name.lower()


OVERLAP_BY_LABEL = {rule.label: rule for rule in Overlap}
CATCH_UP_BY_LABEL = {rule.label: rule for rule in CatchUp}


class Due(NamedTuple):
    """Ticks to fire now, oldest first, and how many were missed for good."""

    ticks: tuple[int, ...]
    missed: int


class Plan(NamedTuple):
    """What to do with due ticks in the light of what still runs."""

    fire: tuple[int, ...] = ()
    skip: tuple[int, ...] = ()
    waiting: int | None = None  # the tick that waits for the running one to end
    cancel: bool = False


def due_ticks(
    newest_first: Iterable[int], handled_ms: int, now_ms: int, rule: CatchUp, window_ms: int
) -> Due:
    """Of the ticks up to now that are not settled yet, those that fire."""
    taken: list[int] = []
    missed = 0
    for tick in newest_first:
        if tick <= handled_ms or missed >= COUNT_MAX:
            break
        if not missed and _is_wanted(now_ms - tick, len(taken), rule, window_ms):
            taken.append(tick)
        else:
            missed += 1
    return Due(tuple(reversed(taken)), missed)


def _is_wanted(late_ms: int, taken: int, rule: CatchUp, window_ms: int) -> bool:
    if late_ms <= ON_TIME_MS:
        return True
    match rule:
        case CatchUp.NONE:
            return False
        case CatchUp.LAST:
            return taken == 0
        case CatchUp.ALL:
            return late_ms <= window_ms and taken < CATCH_UP_MAX


def plan(ticks: Sequence[int], overlap: Overlap, *, is_live: bool, waiting: int | None) -> Plan:
    """`ticks` oldest first; `is_live`: the last run is not over; `waiting`: a tick waits for it."""
    if overlap is Overlap.ALLOW:
        return Plan(fire=tuple(ticks))
    if not is_live and waiting is not None:
        ticks, waiting = [waiting, *ticks], None
    if not ticks:
        return Plan(waiting=waiting)
    match overlap:
        case Overlap.SKIP:
            fire = () if is_live else (ticks[0],)
            return Plan(fire, tuple(ticks[len(fire) :]))
        case Overlap.QUEUE_ONE:
            return _queue_one(ticks, is_live, waiting)
        case Overlap.CANCEL_RUNNING:
            return _cancel_running(ticks, is_live, waiting)
    raise AssertionError(overlap)


def _queue_one(ticks: Sequence[int], is_live: bool, waiting: int | None) -> Plan:
    fire = () if is_live else (ticks[0],)
    rest = tuple(ticks[len(fire) :])
    if waiting is None and rest:
        waiting, rest = rest[0], rest[1:]
    return Plan(fire, rest, waiting)


def _cancel_running(ticks: Sequence[int], is_live: bool, waiting: int | None) -> Plan:
    *older, newest = ticks
    if not is_live:
        return Plan((newest,), tuple(older))
    if waiting is not None:
        older = [waiting, *older]
    return Plan((), tuple(older), newest, cancel=True)


def spread_of(name: str, tick_ms: int, jitter_ms: int) -> int:
    """How long after its tick a run is due: the same every time it is asked, spread by names."""
    return zlib.crc32(f"{name}/{tick_ms}".encode()) % (jitter_ms + 1) if jitter_ms else 0


class Every:
    """Ticks at a fixed interval, counted from an anchor. Clocks that change do not matter to it."""

    def __init__(self, interval_ms: int, anchor_ms: int) -> None:
        self._interval_ms = interval_ms
        self._anchor_ms = anchor_ms

    def after(self, moment_ms: int, steps: Steps | None = None) -> Iterator[int]:
        """Ticks after a moment, oldest first."""
        count = max((moment_ms - self._anchor_ms) // self._interval_ms + 1, 1)
        while True:
            yield self._anchor_ms + count * self._interval_ms
            count += 1

    def until(self, moment_ms: int, steps: Steps | None = None) -> Iterator[int]:
        """Ticks up to a moment, newest first."""
        count = (moment_ms - self._anchor_ms) // self._interval_ms
        while count > 0:
            yield self._anchor_ms + count * self._interval_ms
            count -= 1

    @property
    def text(self) -> str:
        seconds = self._interval_ms / 1000
        for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
            if seconds >= size and seconds % size == 0:
                number = round(seconds / size)
                return f"Every {unit}" if number == 1 else f"Every {number} {unit}s"
        return f"Every {seconds:g} seconds"
