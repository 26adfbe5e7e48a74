"""Runs over time: from the times of single jobs to depth, rates and quantiles per moment.

All of it is exact: every job's moments are known, so nothing is sampled and nothing is missed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairway.rig.quantile import quantile


class Life(NamedTuple):
    """One job in seconds of one clock. `intended` is when its client meant to send it."""

    intended: float
    accepted: float
    started: float
    finished: float

    @property
    def latency(self) -> float:
        return self.finished - self.intended


class Moment(NamedTuple):
    at: float  # the middle of the bin
    offered: float  # per second
    completed: float  # per second
    depth: int  # accepted and not started, at the end of the bin
    p50: float  # latency of what finished in the bin; NaN when nothing did
    p99: float


def timeline(lives: Sequence[Life], start: float, end: float, bin_seconds: float) -> list[Moment]:
    intended = sorted(life.intended for life in lives)
    accepted = sorted(life.accepted for life in lives)
    started = sorted(life.started for life in lives)
    by_end = sorted(lives, key=lambda life: life.finished)
    finished = [life.finished for life in by_end]
    found = []
    for n in range(max(1, round((end - start) / bin_seconds))):
        left, right = start + n * bin_seconds, start + (n + 1) * bin_seconds
        done = by_end[bisect_left(finished, left) : bisect_left(finished, right)]
        found.append(
            Moment(
                at=(left + right) / 2 - start,
                offered=count_in(intended, left, right) / bin_seconds,
                completed=len(done) / bin_seconds,
                depth=bisect_right(accepted, right) - bisect_right(started, right),
                p50=quantile((life.latency for life in done), 0.50),
                p99=quantile((life.latency for life in done), 0.99),
            )
        )
    return found


def count_in(ordered: Sequence[float], left: float, right: float) -> int:
    """How many of these sorted times lie in [left, right)."""
    return bisect_left(ordered, right) - bisect_left(ordered, left)


def rate_of(times: Iterable[float], left: float, right: float) -> float:
    """Per second, within [left, right)."""
    return count_in(sorted(times), left, right) / (right - left)
