"""What one fleet does about the number of workers that a pool should have.

A fleet starts and ends its own workers only. Others count towards the number: those of other
machines, and those started by hand. Machines divide a pool evenly, each knowing its part. A fleet
ends nobody but those who may go, so a number that falls ends nobody who is busy.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """Which part of a pool's workers is this machine's: the `number`-th of `of`, from 1 on."""

    number: int = 1
    of: int = 1

    def cut(self, wanted: int) -> int:
        """The parts of any number add up to it."""
        return wanted * self.number // self.of - wanted * (self.number - 1) // self.of


class PoolWish(NamedTuple):
    """What a fleet reads of a pool."""

    wanted: int
    workers: int  # that the platform hears, ours among them
    may_go: Collection[str]


class FleetPlan(NamedTuple):
    start: int
    end: tuple[str, ...]


def plan(wish: PoolWish, part: Part, mine: Sequence[str], dead: int) -> FleetPlan:
    """`mine` are the fleet's own that run and were not asked to end; `dead` those that died of
    late, which the platform may still believe to be there."""
    end = tuple(name for name in mine if name in wish.may_go)
    stay = len(mine) - len(end)
    others = max(wish.workers - len(mine) - dead, 0)
    missing = min(part.cut(wish.wanted), wish.wanted - others) - stay
    return FleetPlan(max(missing, 0), end)
