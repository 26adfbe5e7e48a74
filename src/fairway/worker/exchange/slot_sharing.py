"""How a worker's slots of one pool are shared out between the owners that it serves: pure.

Slots go where work waits, by the weights of the tenants that wait there; an owner for which nothing
waits keeps what it uses and, of many slots, a small reserve, so that its next job starts at once.
Where more owners have work than there are slots, these go round. What is answered is a wish: runs
are never ended for it, and `promises.py` sees to it that no slot is promised twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

RESERVE_PART = 16  # of the slots: what an owner may start at once for which nothing waits
RESERVE_MAX = 4
LEVEL_STEPS = 48  # of a bisection: finer than any part of a slot


class OwnerNeed(NamedTuple):
    """What one owner said last."""

    in_use: int = 0
    is_waiting: bool = False  # it would give more, had it a free slot
    weight: int = 1  # of the tenants that waited there, when they last did


def share_slots(slots: int, needs: Sequence[OwnerNeed], turn: int = 0) -> list[int]:
    """So many for each; all are given, and whoever waits has one where there are enough."""
    waiting = [number for number, need in enumerate(needs) if need.is_waiting]
    if slots < len(waiting):
        chosen = _from(waiting, turn)[:slots]
        return [int(number in chosen) for number in range(len(needs))]
    caps = [_most_of(need, slots) for need in needs]
    surplus = slots - sum(caps)
    if surplus < 0:
        return _rounded(slots, caps, _level(slots, caps, needs), needs)
    for number in _from(list(range(len(needs))), turn)[: surplus % len(needs)]:
        caps[number] += 1
    return [cap + surplus // len(needs) for cap in caps]


def reserve_of(slots: int) -> int:
    return min(slots // RESERVE_PART, RESERVE_MAX)


def _most_of(need: OwnerNeed, slots: int) -> int:
    return slots if need.is_waiting else min(need.in_use + reserve_of(slots), slots)


def _from(numbers: list[int], turn: int) -> list[int]:
    start = turn % len(numbers)
    return numbers[start:] + numbers[:start]


def _amount(level: float, cap: int, need: OwnerNeed) -> float:
    return min(float(cap), max(float(need.is_waiting), level * need.weight))


def _level(slots: int, caps: Sequence[int], needs: Sequence[OwnerNeed]) -> float:
    """The slots for each unit of weight with which all are given away, and hardly one more."""
    low, high = 0.0, float(slots)
    for _ in range(LEVEL_STEPS):
        middle = (low + high) / 2
        given = sum(_amount(middle, cap, need) for cap, need in zip(caps, needs, strict=True))
        low, high = (middle, high) if given <= slots else (low, middle)
    return low


def _rounded(
    slots: int, caps: Sequence[int], level: float, needs: Sequence[OwnerNeed]
) -> list[int]:
    """Whole slots; what is left goes to the largest parts that were cut off."""
    exact = [_amount(level, cap, need) for cap, need in zip(caps, needs, strict=True)]
    given = [int(amount) for amount in exact]
    order = sorted(range(len(caps)), key=lambda number: given[number] - exact[number])
    left = slots - sum(given)
    while left > 0:
        for number in order:
            if left > 0 and given[number] < caps[number]:
                given[number] += 1
                left -= 1
    return given
