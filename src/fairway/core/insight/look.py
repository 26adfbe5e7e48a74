"""One look at a server's memory, as whoever takes it hands it on to those who tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf
from typing import NamedTuple

from fairway.core.backlog.counts import NO_WORKER, Survey
from fairway.core.backlog.holds import ELSEWHERE, MOVING, PAUSED, SUSPENDED
from fairway.core.ids import PoolId
from fairway.core.insight.sight import HeldCounts

CIRCUIT_OPEN = "circuit_open"


class Look(NamedTuple):
    waiting: Survey
    running: Mapping[PoolId, int]  # slots in use
    slots: Mapping[PoolId, int]
    restraints: Mapping[str, int]
    unix_ms: int  # when it ended

    def oldest_age_ms(self, pool: PoolId) -> int | None:
        """None: nothing waits that could run."""
        oldest_ms = self.waiting.oldest_ms.get(pool)
        if oldest_ms is None or isinf(oldest_ms):
            return None
        return max(self.unix_ms - round(oldest_ms), 0)

    def runnable_age_ms(self, pool: PoolId) -> int:
        """Of the oldest that could start if there were a slot; 0: none could."""
        oldest_ms = self.waiting.runnable_oldest_ms.get(pool)
        if oldest_ms is None or isinf(oldest_ms):
            return 0
        return max(self.unix_ms - round(oldest_ms), 0)

    def held(self, pool: PoolId) -> HeldCounts:
        """By what people do about it; whatever else holds jobs back is a throttle."""
        counts = dict.fromkeys(HeldCounts.__struct_fields__, 0)
        counts["throttled"] = self.waiting.parked.get(pool, 0)
        for (where, reason), jobs in self.waiting.held.items():
            if where == pool:
                counts[_KINDS.get(reason, "throttled")] += jobs
        return HeldCounts(**counts)


_KINDS = {
    PAUSED: "paused",
    SUSPENDED: "paused",
    ELSEWHERE: "paused",
    MOVING: "paused",
    CIRCUIT_OPEN: "circuit",
    NO_WORKER: "no_worker",
}


def is_throttle(reason: str) -> bool:
    return reason not in _KINDS
