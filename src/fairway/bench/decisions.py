"""`fairway bench decisions`: what one decision costs, of the scheduler and of the dispatcher.

decision_cost_ratio   the scheduler's, with 110 000 tenants over 1 000
decision_us           with 110 000

and what limits by key add (`limit_cost.py`). In this process, in processor time, some seconds long.
The scheduler is alone here: tenants of all tiers with work, a thousand busy slots, jobs ending and
starting in batches as exchanges bring them.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import deque
from typing import NamedTuple

from fairway.bench import limit_cost, output
from fairway.bench.output import Aim, part
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


def run(*, json_output: bool) -> int:
    figures: dict[str, float] = {}
    with part("decisions among many tenants"):
        figures["decision_cost_ratio"], figures["decision_us"] = cost_ratio()
    with part("decisions over ten thousand keys"):
        figures |= limit_cost.measure()
    figures = {name: round(value, 3) for name, value in figures.items()}
    if json_output:
        output.show(figures, json_output=True)
    else:
        output.show_table("One decision, in processor time", figures, AIMS)
    return 0


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


AIMS = {
    "decision_cost_ratio": Aim("≤ 2", lambda v: v <= 2),
    "limits_cost_ratio": Aim("≤ 1.2", lambda v: v <= 1.2),
    "rates_cost_ratio": Aim("≤ 1.2", lambda v: v <= 1.2),
}
