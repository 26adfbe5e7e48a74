"""Judges limits by key from what runs signed: never two where one may run, never more in a while.

Nothing of the platform's own counts is asked. The trace tells when a lease was written, and when
one was given up: code of a worker that is dead or cut off no longer counts from then on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

from tests.acceptance.checker import RUNNING, Change

GIVEN_UP_SECONDS = 1.0  # a server knows so much earlier than the trace that a lease is over
GRANT_SECONDS = 1.0  # from a grant, where a start counts, to its lease on disk, as a rule


class Limit(NamedTuple):
    """At most so many at once; or so many starts in so many seconds."""

    key: str
    most: int
    per_seconds: float = 0.0

    def wire(self) -> dict[str, Any]:
        if self.per_seconds:
            return {"key": self.key, "count": self.most, "per_seconds": self.per_seconds}
        return {"key": self.key, "at_most": self.most}


class Run(NamedTuple):
    began: float
    over: float  # as far as its limit is concerned
    counts_from: float  # for its rate: when its lease was written, or granted, if that took long
    job: str
    was_given_up: bool


def runs_of(lines: Iterable[Mapping[str, Any]], changes: Iterable[Change]) -> list[Run]:
    """Every run that began, with what the trace says of its lease."""
    history: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        history[change.job].append(change)
    lines = list(lines)
    ended = {line["run"]: line["at"] for line in lines if line["event"] == "end"}
    return [
        _run(line["job"], line["at"], ended.get(line["run"], inf), history[line["job"]])
        for line in lines
        if line["event"] == "begin"
    ]


def _run(job: str, began: float, ended: float, history: list[Change]) -> Run:
    lease = max(
        (one for one in history if one.after == RUNNING and one.at <= began), key=lambda one: one.at
    )
    left = [one.at for one in history if one.before == RUNNING != one.after and one.at > lease.at]
    given_up = min(left, default=inf)
    # A machine that stands still may write a lease seconds after its grant.
    counts_from = min(lease.started or inf, lease.at - GRANT_SECONDS)
    if given_up < ended:
        over = max(given_up - GIVEN_UP_SECONDS, began)
        return Run(began, over, counts_from, job, was_given_up=True)
    return Run(began, ended, counts_from, job, was_given_up=False)


def check_limits(runs: Iterable[Run], limits: Mapping[str, Limit]) -> None:
    """`limits` by job."""
    by_limit: dict[Limit, list[Run]] = defaultdict(list)
    for run in runs:
        if run.job in limits:
            by_limit[limits[run.job]].append(run)
    for limit, mine in by_limit.items():
        if limit.per_seconds:
            _check_rate(limit, mine)
        else:
            _check_at_once(limit, mine)


def _check_at_once(limit: Limit, runs: list[Run]) -> None:
    for run in runs:
        beside = [one for one in runs if one.began <= run.began < one.over or one is run]
        assert len(beside) <= limit.most, f"{len(beside)} at once of {limit}: {beside}"


def _check_rate(limit: Limit, runs: list[Run]) -> None:
    """It counts from the grant: what a run took to begin after that is no fault of the rate."""
    for run in runs:
        until = run.counts_from + limit.per_seconds
        beside = [one for one in runs if one.counts_from >= run.counts_from and one.began < until]
        assert len(beside) <= limit.most, f"{len(beside)} in a while of {limit}: {beside}"
