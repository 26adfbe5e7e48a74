"""A pool with more work than slots: how near to its weight each tenant comes.

The scene of `fairway bench fairness` (100 tenants of mixed weights and runs on 200 slots), in
virtual time.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.ids import TenantId, TypeId
from fairway.core.pools import SHORT
from fairway.rig.quantile import jain
from fairway.simulate.simulation import Life, Setup, Simulation
from fairway.simulate.virtual_time import SECOND_US
from fairway.simulate.work import Arrival, Kind, tenant_of

WEIGHTS = (10, 20, 50)
RUN_SECONDS = (0.1, 0.2, 0.4)
SETTLE_SECONDS = 1.0  # the first moment, when every slot is granted at once, is no share yet
SPARE_WORK = 1.3  # nobody may run out of work


class Shares(NamedTuple):
    seconds: float
    jain: float
    error_max: float  # the largest distance of received over entitled from one


def contended(tenants: int = 100, slots: int = 200, seconds: float = 60.0, seed: int = 1) -> Shares:
    weights = {TenantId(n + 1): WEIGHTS[n % 3] for n in range(tenants)}
    kinds = [
        Kind(TypeId(n + 1), f"takes {run:g} s", SHORT.number) for n, run in enumerate(RUN_SECONDS)
    ]
    lives: list[Life] = []
    setup = Setup(
        tenants=[tenant_of(one, f"t{one}", weight=weight) for one, weight in weights.items()],
        kinds=kinds,
        seed=seed,
    )
    simulation = Simulation(setup, lives.append)
    fair = {one: slots * weight / sum(weights.values()) for one, weight in weights.items()}
    work = [
        Arrival(0, one, kinds[one // 3 % 3], round(run * SECOND_US))
        for one in weights
        for run in [RUN_SECONDS[one // 3 % 3]]
        for _ in range(int(fair[one] / run * seconds * SPARE_WORK) + 20)
    ]
    simulation.workers.start({SHORT.number: slots})
    simulation.feed(work)
    simulation.run(seconds)
    lives += simulation.unfinished()
    span = (SETTLE_SECONDS, seconds)
    got = slot_seconds(lives, span)
    ratios = [got.get(one, 0.0) / (slots_ * (span[1] - span[0])) for one, slots_ in fair.items()]
    return Shares(seconds, jain(ratios), max(abs(ratio - 1) for ratio in ratios))


def slot_seconds(lives: list[Life], span: tuple[float, float]) -> dict[TenantId, float]:
    """By tenant, what their first runs held of slots within some seconds."""
    found: dict[TenantId, float] = {}
    for life in lives:
        if life.started_us >= 0:
            start = life.started_us / SECOND_US
            end = start + life.arrival.run_us / SECOND_US
            held = max(min(end, span[1]) - max(start, span[0]), 0.0)
            tenant = life.arrival.tenant
            found[tenant] = found.get(tenant, 0.0) + held
    return found
