"""What a change of terms would have done: recorded work, before and after, tenant by tenant.

Both simulations get the same jobs at the same moments, on the same slots. So what differs between
them is the change and nothing else.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fairway import FairwayError
from fairway.core.ids import PoolId, TenantId
from fairway.core.pools import BUILT_IN, BY_NAME
from fairway.core.tenant import Tenant
from fairway.rig.quantile import quantile
from fairway.simulate.simulation import Life, Setup, Simulation
from fairway.simulate.usage_log import Recorded
from fairway.simulate.virtual_time import SECOND_US
from fairway.simulate.work import TIERS, tenant_of

IN_USE = 0.8  # of the slots in the mean, where nobody says how many there are
NOTICED = 0.05  # a smaller part of its mean wait is no news to a tenant
NOTICED_SECONDS = 0.01
STEP_SECONDS = 60.0
EXAMPLES = {"weight": "50", "tier": "pro", "cap": "20"}  # for who writes a change otherwise
PATIENCE = 20  # times the recorded time, until what is left is left


class Change(NamedTuple):
    """One term of one tenant."""

    tenant: str
    term: str  # weight, cap, tier
    value: str

    def __str__(self) -> str:
        return f"{self.term} of {self.tenant} to {self.value}"


class Waits(NamedTuple):
    jobs: int
    mean: float
    p99: float


class Effect(NamedTuple):
    """What a change does to one tenant, over all of its pools."""

    tenant: str
    before: Waits
    after: Waits

    @property
    def verdict(self) -> str:
        least = max(NOTICED * self.before.mean, NOTICED_SECONDS)
        shift = self.after.mean - self.before.mean
        if abs(shift) < least:
            return "same"
        return "loses" if shift > 0 else "gains"


def parse_change(term: str, text: str) -> Change:
    """`acme=50`."""
    name, is_there, value = text.partition("=")
    if not is_there or not name or not value:
        raise FairwayError(
            f"--{term} {text}: say tenant=value, as in --{term} acme={EXAMPLES[term]}."
        )
    return Change(name, term, value)


def parse_slots(text: str) -> dict[PoolId, int]:
    """`short=50,medium=8`."""
    found = {}
    for one in text.split(","):
        name, _, count = one.partition("=")
        if name not in BY_NAME or not count.isdecimal():
            raise FairwayError(f"--slots {text}: say pool=number,…, as in short=50,medium=8.")
        found[BY_NAME[name].number] = int(count)
    return found


def usual_slots(recorded: Recorded) -> dict[PoolId, int]:
    """So many that the recorded work uses four fifths of them in the mean."""
    used: dict[PoolId, int] = defaultdict(int)
    for one in recorded.arrivals:
        used[one.kind.pool] += one.run_us
    span_us = max(recorded.arrivals[-1].at_us, SECOND_US)
    return {pool: max(math.ceil(us / span_us / IN_USE), 1) for pool, us in used.items()}


def changed(tenants: Mapping[str, Tenant], changes: Iterable[Change]) -> dict[str, Tenant]:
    found = dict(tenants)
    for change in changes:
        if change.tenant not in found:
            raise FairwayError(f"The file tells of no jobs of a tenant {change.tenant!r}.")
        found[change.tenant] = _with(found[change.tenant], change)
    return found


def _with(tenant: Tenant, change: Change) -> Tenant:
    if change.term == "tier":
        if change.value not in TIERS:
            raise FairwayError(f"--tier {change.value}: there are {', '.join(TIERS)}.")
        return tenant_of(tenant.id, tenant.name, change.value)
    if not change.value.isdecimal() or not int(change.value):
        raise FairwayError(f"--{change.term} {change.value}: it must be a whole number above 0.")
    value = int(change.value)
    if change.term == "weight":
        return tenant._replace(weight=value)
    return tenant._replace(cap=value)


def replay(
    recorded: Recorded, tenants: Mapping[str, Tenant], slots: Mapping[PoolId, int], seed: int = 1
) -> dict[str, Waits]:
    """Waits by tenant."""
    lives: list[Life] = []
    setup = Setup(tenants=list(tenants.values()), kinds=recorded.kinds, seed=seed)
    simulation = Simulation(setup, lives.append)
    for pool in BUILT_IN:
        if slots.get(pool.number):
            for count in _workers(slots[pool.number], pool.slots_default):
                simulation.workers.start({pool.number: count})
    simulation.feed(recorded.arrivals)
    at = recorded.seconds
    simulation.run(at)
    while simulation.unfinished() and at < PATIENCE * recorded.seconds + STEP_SECONDS:
        at += STEP_SECONDS
        simulation.run(at)
    names = {tenant.id: name for name, tenant in tenants.items()}
    return _waits([*lives, *simulation.unfinished()], names, simulation.time.now_us())


def _workers(slots: int, each: int) -> list[int]:
    return [each] * (slots // each) + ([slots % each] if slots % each else [])


def _waits(lives: Sequence[Life], names: Mapping[TenantId, str], now_us: int) -> dict[str, Waits]:
    """A job that never started has waited until now."""
    found: dict[str, list[float]] = defaultdict(list)
    for life in lives:
        wait_us = life.wait_us if life.started_us >= 0 else now_us - life.accepted_us
        found[names[life.arrival.tenant]].append(wait_us / SECOND_US)
    return {
        name: Waits(len(waits), sum(waits) / len(waits), quantile(waits, 0.99))
        for name, waits in found.items()
    }


def effects(before: Mapping[str, Waits], after: Mapping[str, Waits]) -> list[Effect]:
    """Who wins the most comes first."""
    found = [Effect(name, before[name], after[name]) for name in sorted(before)]
    return sorted(found, key=lambda one: one.after.mean - one.before.mean)
