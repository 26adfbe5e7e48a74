"""Quantiles by the nearest-rank rule: always a value that was measured, never one in between."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def quantile(values: Iterable[float], q: float) -> float:
    """The smallest value that at least `q` of all values do not exceed; NaN of nothing."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def jain(shares: Sequence[float]) -> float:
    """Jain's index of fairness: 1 when all shares are equal, 1/n when one has all."""
    total = sum(shares)
    squares = sum(share * share for share in shares)
    return total * total / (len(shares) * squares) if squares else 1.0
