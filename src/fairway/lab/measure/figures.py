"""Figures of a fleet run by window, group and pool, and whether what was expected holds.

A figure's name is a path: `noisy/victim/short/pickup_p99_s` is the window, the group of tenants,
the pool and the measure; `all` stands for everybody in the first three places. `lost` is what was
accepted and never ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairway.rig.quantile import jain, quantile

ALL = "all"


class Story(NamedTuple):
    """One accepted job. Times in seconds from the start of the run; None: it did not happen."""

    group: str
    tenant: int  # number within the group
    kind: str
    pool: str
    intended: float
    accepted: float
    started: float | None
    finished: float | None
    state: str
    attempts: int


class Bound(NamedTuple):
    name: str
    value: float
    most: float | None
    least: float | None

    @property
    def holds(self) -> bool:
        above = self.least is None or self.value >= self.least
        return above and (self.most is None or self.value <= self.most)


def figures(stories: Sequence[Story], windows: dict[str, tuple[float, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for window, (start, end) in {ALL: (0.0, float("inf")), **windows}.items():
        inside = [story for story in stories if start <= story.intended < end]
        for group in [ALL, *sorted({story.group for story in inside})]:
            ours = [story for story in inside if group in (ALL, story.group)]
            for pool in [ALL, *sorted({story.pool for story in ours})]:
                chosen = [story for story in ours if pool in (ALL, story.pool)]
                path = f"{window}/{group}/{pool}"
                found |= {f"{path}/{name}": value for name, value in _measures(chosen).items()}
    return found


def _measures(stories: Sequence[Story]) -> dict[str, float]:
    waits = [s.started - s.accepted for s in stories if s.started is not None]
    ends = [s.finished - s.intended for s in stories if s.finished is not None]
    states = [story.state for story in stories]
    return {
        "jobs": float(len(stories)),
        "succeeded": float(states.count("succeeded")),
        "dead": float(states.count("dead")),
        "lost": float(sum(story.finished is None for story in stories)),
        "attempts_mean": _mean(story.attempts for story in stories),
        "attempts_max": float(max((story.attempts for story in stories), default=0)),
        "pickup_p50_s": quantile(waits, 0.5),
        "pickup_p99_s": quantile(waits, 0.99),
        "latency_p50_s": quantile(ends, 0.5),
        "latency_p99_s": quantile(ends, 0.99),
        "jain": jain(_served(stories)),
    }


def _served(stories: Iterable[Story]) -> list[float]:
    """For each tenant, what it got of what it asked for."""
    asked: dict[tuple[str, int], list[bool]] = {}
    for story in stories:
        asked.setdefault((story.group, story.tenant), []).append(story.state == "succeeded")
    return [sum(ends) / len(ends) for ends in asked.values()]


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else float("nan")


def bound(
    found: dict[str, float], figure: str, against: str, most: float | None, least: float | None
) -> Bound:
    """The figure, or its ratio to another, with its bounds; NaN when there is no such figure."""
    value = found.get(figure, float("nan"))
    if not against:
        return Bound(figure, value, most, least)
    return Bound(f"{figure} ÷ {against}", value / found.get(against, float("nan")), most, least)
