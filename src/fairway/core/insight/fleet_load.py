"""What a pool's workers carry and what waits for them, as the autoscaler looks at it.

Only workers that serve everybody count, and of those no more than a few are told by name: the ones
that get no more jobs, and the least busy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

SPARE_MAX = 100  # told by name, of one server and pool


class SpareWorker(Struct, frozen=True, kw_only=True):
    name: str
    busy: int = 0  # leases it holds, of whatever pool
    idle_ms: int = 0
    closed: bool = False  # it gets no more jobs


class FleetLoad(Struct, frozen=True, kw_only=True):
    workers: int = 0
    busy_workers: int = 0
    closed_workers: int = 0  # that get no more jobs, and are about to be ended
    slots: int = 0
    busy_slots: int = 0
    runnable: int = 0  # jobs that could start if there were a slot
    runnable_ms: int = 0  # slot-time of those
    oldest_ms: int = 0  # how long the oldest of them waits
    spare: list[SpareWorker] = []


def told(workers: Iterable[SpareWorker]) -> list[SpareWorker]:
    """Those that are told by name."""
    order = sorted(workers, key=lambda one: (not one.closed, one.busy, -one.idle_ms, one.name))
    return order[:SPARE_MAX]


def joined_loads(parts: Sequence[FleetLoad]) -> FleetLoad:
    return FleetLoad(
        workers=sum(part.workers for part in parts),
        busy_workers=sum(part.busy_workers for part in parts),
        closed_workers=sum(part.closed_workers for part in parts),
        slots=sum(part.slots for part in parts),
        busy_slots=sum(part.busy_slots for part in parts),
        runnable=sum(part.runnable for part in parts),
        runnable_ms=sum(part.runnable_ms for part in parts),
        oldest_ms=max((part.oldest_ms for part in parts), default=0),
        spare=[one for part in parts for one in part.spare],
    )
