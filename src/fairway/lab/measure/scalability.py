"""The universal scalability law: what a system loses to waiting and to agreeing as it grows.

    X(n) = rate · n / (1 + contention·(n − 1) + coherence·n·(n − 1))

`n / X(n)` is linear in (1/rate, contention/rate, coherence/rate), so the fit is a least-squares one
with no part below zero: each part may be forced to zero, and the best of those fits is taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple


class Law(NamedTuple):
    rate: float  # of one, alone
    contention: float  # the share that must wait in line
    coherence: float  # the price of agreeing, for each pair

    def at(self, n: float) -> float:
        return self.rate * n / (1 + self.contention * (n - 1) + self.coherence * n * (n - 1))

    @property
    def peak(self) -> float:
        """Where more begin to make it slower; infinite when that never happens."""
        if self.coherence <= 0:
            return math.inf
        return math.sqrt(max(0.0, 1 - self.contention) / self.coherence)


def fit(points: Sequence[tuple[float, float]]) -> Law:
    """From (n, X(n)), at least two of them with different n."""
    rows = [((1.0, n - 1, n * (n - 1)), n / x) for n, x in points]
    best, best_error = (0.0, 0.0, 0.0), math.inf
    for parts in [(0,), *((0, *more) for more in ((1,), (2,), (1, 2)))]:
        found = _solve(rows, parts)
        if found is None or min(found) < 0 or found[0] <= 0:
            continue
        error = sum((_dot(row, found) - y) ** 2 for row, y in rows)
        if error < best_error:
            best, best_error = found, error
    return Law(1 / best[0], best[1] / best[0], best[2] / best[0])


Row = tuple[float, float, float]


def _dot(row: Row, parts: Row) -> float:
    return sum(a * b for a, b in zip(row, parts, strict=True))


def _solve(rows: Sequence[tuple[Row, float]], parts: tuple[int, ...]) -> Row | None:
    """Least squares over the named parts alone, by the normal equations; None if undetermined."""
    size = len(parts)
    matrix = [
        [sum(row[i] * row[j] for row, _ in rows) for j in parts]
        + [sum(row[i] * y for row, y in rows)]
        for i in parts
    ]
    for i, j in itertools.product(range(size), range(size)):
        if abs(matrix[i][i]) < 1e-12:
            return None
        if i != j:
            factor = matrix[j][i] / matrix[i][i]
            matrix[j] = [a - factor * b for a, b in zip(matrix[j], matrix[i], strict=True)]
    found = [0.0, 0.0, 0.0]
    for place, part in enumerate(parts):
        found[part] = matrix[place][size] / matrix[place][place]
    return found[0], found[1], found[2]
