"""Usage as numbers: exact sums of microseconds, whatever they are summed by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fairway.core.ids import PoolId, TypeId

ALL_POOLS, ALL_TYPES = PoolId(0), TypeId(0)


class Used(NamedTuple):
    """What was used in one period; in which, is its place among the beginnings, from 1."""

    period: int
    pool: PoolId
    type: TypeId
    jobs: int
    attempts: int
    billed_us: int
    unbilled_us: int

    def plus(self, other: Used) -> Used:
        """Of the same period, pool and type."""
        sums = (mine + theirs for mine, theirs in zip(self[3:], other[3:], strict=True))
        return Used(self.period, self.pool, self.type, *sums)


def joined(parts: Iterable[Used]) -> list[Used]:
    """One line for each period, pool and type, in order."""
    found: dict[tuple[int, PoolId, TypeId], Used] = {}
    for one in parts:
        known = found.get(one[:3])
        found[one[:3]] = one if known is None else known.plus(one)
    return [found[key] for key in sorted(found)]


def total_of(parts: Iterable[Used]) -> Used:
    total = Used(0, ALL_POOLS, ALL_TYPES, 0, 0, 0, 0)
    for one in parts:
        total = total.plus(one)
    return total
