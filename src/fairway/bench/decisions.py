"""What one decision of the scheduler costs, with a thousand tenants and with a hundred thousand.

The scheduler alone, in this process: tenants of all tiers with work, a thousand busy slots, jobs
ending and starting in batches as exchanges bring them.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import deque
from typing import NamedTuple

from fairway.core.fair_share.fairness import Entitlement, PoolShare, Running, ShareSettings
from fairway.core.ids import TenantId, TypeId

SLOTS = 1_000
BATCH = 50
ROUNDS = 400
TIERS = (
    Entitlement(weight=1, group="free"),
    Entitlement(weight=10),
    Entitlement(weight=10),
    Entitlement(weight=100),
)


class _Job(NamedTuple):
    type: TypeId
    timeout_ms: int | None = None


def cost_ratio(few: int = 1_000, many: int = 110_000, repeats: int = 15) -> tuple[float, float]:
    """Cost with many tenants over cost with few, and microseconds a decision with many.

    Both are measured in turns, so that a noisy moment meets both, and in processor time: waiting
    for a processor is no cost of a decision.
    """
    pools = {count: _Pool(count) for count in (few, many)}
    times: dict[int, list[float]] = {few: [], many: []}
    for _ in range(repeats):
        for count, pool in pools.items():
            times[count].append(pool.microseconds_a_decision())
    medians = {count: statistics.median(found) for count, found in times.items()}
    return medians[many] / medians[few], medians[many]


class _Pool:
    def __init__(self, tenants: int) -> None:
        self._share = PoolShare(ShareSettings())
        self._share.set_capacity(SLOTS, 0)
        for tenant in map(TenantId, range(1, tenants + 1)):
            self._share.set_entitlement(tenant, TIERS[tenant % len(TIERS)], 0)
            self._share.wake(tenant, 0)
        self._now_us = 0
        self._dice = random.Random(1)
        self._busy: deque[Running] = deque()
        self._start(SLOTS)

    def microseconds_a_decision(self) -> float:
        began = time.process_time()
        for _ in range(ROUNDS):
            self._now_us += self._dice.randrange(15_000, 25_000)
            for _ in range(BATCH):
                self._share.finish(self._busy.popleft(), self._now_us)
            self._start(BATCH)
        return (time.process_time() - began) / (ROUNDS * BATCH) * 1e6

    def _start(self, count: int) -> None:
        job = _Job(TypeId(1))
        granted = self._share.grant(count, lambda tenant: job, self._now_us)
        self._busy.extend(running for _, running in granted)
