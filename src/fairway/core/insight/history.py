"""History as columns for a graph: what servers wrote down by the minute or the hour, added up.

A line of an hour is the sum of its minutes: `rolled_up` is what the store's statement does, too.
Levels are kept as sums, with a bit for each minute that is in them: so their mean is over minutes
that were seen by any server, whether two saw it at the same time or one after the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Literal, NamedTuple

from fairway.core.insight.buckets import merged, quantile_seconds

Step = Literal["minute", "hour"]

STEP_SECONDS: dict[Step, int] = {"minute": 60, "hour": 3600}
#: How long lines are kept.
KEPT: dict[Step, timedelta] = {"minute": timedelta(days=2), "hour": timedelta(days=90)}
POINTS_MAX = 2_880  # two days of minutes; more than ninety days of hours


class Stored(NamedTuple):
    """A line of one server, of one minute or hour."""

    at: int  # its beginning, in seconds since 1970
    minutes: int  # a bit for each minute of the hour that is in it
    accepted: int
    started: int
    succeeded: int
    failed: int
    retried: int
    dead: int
    queued: int | None  # as are the next two: the sum over those minutes
    running: int | None
    slots: int | None
    oldest_ms: int | None  # the greatest
    pickup: Sequence[int]
    run: Sequence[int]


SUMS = ("accepted", "started", "succeeded", "failed", "retried", "dead")
MEANS = ("queued", "running", "slots")
COLUMNS = (*SUMS, *MEANS, "oldest_age_seconds", "pickup_p50", "pickup_p99", "run_p50", "run_p99")


def minute_bit(at: int) -> int:
    return 1 << (at // 60 % 60)


def rolled_up(lines: Sequence[Stored], step_seconds: int = 3600) -> Stored:
    """Minutes of one server and one hour as that hour."""
    known = {name: [getattr(one, name) for one in lines] for name in Stored._fields}
    values = {name: sum(known[name]) for name in SUMS}
    values |= {name: _or_none(sum, known[name]) for name in MEANS}
    return Stored(
        at=known["at"][0] - known["at"][0] % step_seconds,
        minutes=reduce(or_, known["minutes"]),
        oldest_ms=_or_none(max, known["oldest_ms"]),
        pickup=merged(known["pickup"]),
        run=merged(known["run"]),
        **values,
    )


def axis(since_s: int, before_s: int, step: Step) -> range:
    """The steps that begin in this time."""
    seconds = STEP_SECONDS[step]
    return range(-(-since_s // seconds) * seconds, before_s, seconds)


def columns(lines: Iterable[Stored], at: range) -> dict[str, list[float | None]]:
    """By name, one value for each step; None where no server wrote anything."""
    by_step: dict[int, list[Stored]] = defaultdict(list)
    for line in lines:
        by_step[line.at].append(line)
    rows = [_point(by_step[moment]) if moment in by_step else _NOTHING for moment in at]
    return {name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)}


def _point(lines: Sequence[Stored]) -> Sequence[float | None]:
    whole = rolled_up(lines) if len(lines) > 1 else lines[0]
    seen = whole.minutes.bit_count() or 1
    levels = [getattr(whole, name) for name in MEANS]
    return (
        *(getattr(whole, name) for name in SUMS),
        *(None if level is None else level / seen for level in levels),
        None if whole.oldest_ms is None else whole.oldest_ms / 1000,
        quantile_seconds(whole.pickup, 500),
        quantile_seconds(whole.pickup, 990),
        quantile_seconds(whole.run, 500),
        quantile_seconds(whole.run, 990),
    )


_NOTHING: Sequence[float | None] = (None,) * len(COLUMNS)


def _or_none(of: Callable[[list[int]], int], values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return of(known) if known else None
