"""From counts that only grow to rates a second: a few marks in time, and what came between."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from fairway.core.ids import PoolId
from fairway.core.insight.activity import JobCounts
from fairway.core.insight.buckets import since
from fairway.core.insight.sight import RATES

RATE_US = 10_000_000  # a rate is of about so long
TIMES_US = 60_000_000  # and times of jobs are of the last minute
MARKS_MAX = 64


class PoolMark(NamedTuple):
    counts: tuple[int, ...] = (0,) * len(RATES)
    pickup: list[int] = []  # noqa: RUF012  (never changed)
    whole: list[int] = []  # noqa: RUF012  (never changed)
    queued: int = 0


class Mark(NamedTuple):
    at_us: int
    pools: dict[PoolId, PoolMark]


class PoolRates(NamedTuple):
    rates: dict[str, float] | None = None  # None: nothing to compare with yet
    falling: float | None = None
    pickup: list[int] = []  # noqa: RUF012  (never changed)
    whole: list[int] = []  # noqa: RUF012  (never changed)


class RateWindow:
    def __init__(self) -> None:
        self._marks: deque[Mark] = deque(maxlen=MARKS_MAX)

    def note(
        self, pools: Mapping[PoolId, JobCounts], queued: Mapping[PoolId, int], now_us: int
    ) -> None:
        marks = {
            pool: _mark(pools.get(pool, _NONE), queued.get(pool, 0))
            for pool in pools.keys() | queued.keys()
        }
        self._marks.append(Mark(now_us, marks))
        while len(self._marks) > 2 and self._marks[1].at_us <= now_us - TIMES_US:
            self._marks.popleft()

    def of(self, pool: PoolId) -> PoolRates:
        if len(self._marks) < 2:
            return PoolRates()
        newest, oldest = self._marks[-1], self._marks[0]
        before = self._before(newest.at_us - RATE_US)
        now, then, long_ago = (one.pools.get(pool, _UNMARKED) for one in (newest, before, oldest))
        seconds = (newest.at_us - before.at_us) / 1e6
        return PoolRates(
            {
                name: (new - old) / seconds
                for name, new, old in zip(RATES, now.counts, then.counts, strict=True)
            },
            (then.queued - now.queued) / seconds,
            since(now.pickup, long_ago.pickup),
            since(now.whole, long_ago.whole),
        )

    def _before(self, moment_us: int) -> Mark:
        """The newest mark that is as old as that; else the oldest."""
        found = self._marks[0]
        for mark in self._marks:
            if mark.at_us > moment_us:
                break
            found = mark
        return found


def _mark(counts: JobCounts, queued: int) -> PoolMark:
    numbers = tuple(getattr(counts, name) for name in RATES)
    return PoolMark(numbers, list(counts.pickup), list(counts.whole), queued)


_NONE, _UNMARKED = JobCounts(), PoolMark()
