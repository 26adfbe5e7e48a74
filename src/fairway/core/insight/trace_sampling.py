"""Which jobs have their spans made: decided once, when a job is accepted, and kept with it.

A job that comes within a trace follows it, if that is wanted; of the others a ratio is taken. Both
within a number a second, of which one tenant has a quarter at most: whoever sets the sampled flag
on every request costs others neither time nor their own traces.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import NamedTuple

from fairway.core.backpressure.rate_limit import Bucket
from fairway.core.ids import TenantId
from fairway.core.insight.trace_context import is_sampled

TENANTS_MAX = 1000  # of which it is known what they used; then all begin anew


class Sampling(NamedTuple):
    ratio: float  # of jobs that begin a trace of their own
    follows_parents: bool = True  # a job within a trace is sampled as that is
    per_second: int = 200


class TraceSampler:
    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._all = Bucket(sampling.per_second, 0)
        self._by_tenant: dict[TenantId, Bucket] = {}

    def takes(self, parent: bytes | None, tenant: TenantId, chance: float, now_us: int) -> bool:
        return self.wants(parent, chance) and self.has_room(tenant, now_us)

    def wants(self, parent: bytes | None, chance: float) -> bool:
        """`chance` is evenly between 0 and 1. Asked for every job: most are not wanted."""
        if parent is None or not self._sampling.follows_parents:
            return chance < self._sampling.ratio
        return is_sampled(parent)

    def places(self, count: int, chance: Callable[[], float]) -> list[int]:
        """As `wants` for so many jobs without a trace: how many are passed over until the next one
        is drawn at once, so that those that are not wanted cost nothing."""
        ratio = self._sampling.ratio
        if ratio >= 1:
            return list(range(count))
        if ratio <= 0:
            return []
        found: list[int] = []
        place, rest = -1, log(1 - ratio)
        while True:
            place += 1 + int(log(1 - chance()) / rest)
            if place >= count:
                return found
            found.append(place)

    def has_room(self, tenant: TenantId, now_us: int) -> bool:
        most = self._sampling.per_second
        share = max(most // 4, 1)
        own = self._by_tenant.get(tenant)
        if own is None:
            if len(self._by_tenant) >= TENANTS_MAX:
                self._by_tenant.clear()
            own = self._by_tenant[tenant] = Bucket(share, now_us)
        if own.early_us(1, share, share, now_us) or self._all.take(1, most, most, now_us):
            return False
        return own.take(1, share, share, now_us) == 0
