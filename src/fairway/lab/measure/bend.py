"""Where a load-response curve bends, by a named rule.

**Broken stick**: completed work follows offered work up to a limit and stays there; the limit is
the `c` for which `min(offered, c)` fits the measured points best (least squares). The rule uses all
points, so it is not tied to the steps that happened to be tried. The bracket beside it is a second
opinion that needs no fit: the highest load that was still served in full, the lowest that was not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

RULE = "broken stick: least-squares fit of completed = min(offered, limit)"
SERVED_SHARE = 0.97  # a step that completes this much of what is offered is served in full


class Point(NamedTuple):
    offered: float
    completed: float


class Bend(NamedTuple):
    limit: float  # NaN when no point lies beyond it
    error: float  # root of the mean squared distance
    served_up_to: float  # highest offered load served in full
    not_served_from: float  # lowest one that was not; infinite when all were


def find_bend(points: Sequence[Point]) -> Bend:
    """The best limit. Optimal within each split of the points into 'below' and 'beyond'."""
    ordered = sorted(points)
    candidates = [_mean_completed(ordered[split:]) for split in range(len(ordered))]
    limit = min(candidates, key=lambda c: _squares(ordered, c), default=math.nan)
    saturated = [p for p in ordered if p.completed < SERVED_SHARE * p.offered]
    served = [p.offered for p in ordered if p.completed >= SERVED_SHARE * p.offered]
    return Bend(
        limit=limit if saturated else math.nan,
        error=math.sqrt(_squares(ordered, limit) / len(ordered)) if ordered else math.nan,
        served_up_to=max(served, default=math.nan),
        not_served_from=min((p.offered for p in saturated), default=math.inf),
    )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the least-squares line through (x, y): how fast a depth grows."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count if count else 0.0
    mean_y = sum(y for _, y in points) / count if count else 0.0
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def _mean_completed(points: Sequence[Point]) -> float:
    return sum(p.completed for p in points) / len(points)


def _squares(points: Sequence[Point], limit: float) -> float:
    return sum((p.completed - min(p.offered, limit)) ** 2 for p in points)
