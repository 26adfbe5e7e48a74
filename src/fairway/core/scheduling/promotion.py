"""How many due jobs may move to the backlog now: so many a second in all, so many a tenant.

Whatever was missed (a herd, an outage) is caught up with under the same caps, since a bucket holds
a tenth of a second and no more. Tenants share what there is evenly: one with a million due jobs
holds up nobody with one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fairway.core.backpressure.rate_limit import Bucket
from fairway.core.ids import TenantId

BURST_PER_SECOND = 10  # a bucket holds what its rate gives in a tenth of a second


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionCaps:
    jobs_per_second: int = 3000
    tenant_jobs_per_second: int = 1500


class Bunch(NamedTuple):
    """The due jobs of one tenant within one second, as far as they are known."""

    second: int
    tenant: TenantId
    age_ms: int  # of the first of them; negative when it is not due yet


class Allowance:
    """A bucket at a fixed rate, at least one job deep."""

    __slots__ = ("_bucket", "_burst", "_rate")

    def __init__(self, per_second: int, now_us: int) -> None:
        self._rate = per_second
        self._burst = max(per_second // BURST_PER_SECOND, 1)
        self._bucket = Bucket(self._burst, now_us)

    def left(self, now_us: int) -> int:
        """Jobs that may go now."""
        return self._bucket.quota(self._rate, self._burst, now_us).left

    def is_full(self, now_us: int) -> bool:
        return self.left(now_us) >= self._burst

    def spend(self, jobs: int, now_us: int) -> None:
        self._bucket.take(jobs, self._rate, self._burst, now_us)


class Allowances:
    """Those of one server's shards together, and of its tenants with due jobs."""

    def __init__(self, caps: PromotionCaps, now_us: int) -> None:
        self._caps = caps
        self._all = Allowance(caps.jobs_per_second, now_us)
        self._tenants: dict[TenantId, Allowance] = {}

    def allot(self, tenants: Iterable[TenantId], now_us: int) -> dict[TenantId, int]:
        """Jobs for each tenant: even shares, what one cannot use goes to the others."""
        self._forget_full(now_us)
        left = self._all.left(now_us)
        wishes = sorted((self._left(tenant, now_us), tenant) for tenant in set(tenants))
        shares: dict[TenantId, int] = {}
        for index, (most, tenant) in enumerate(wishes):
            # Those who may least come first; a remainder goes to the last ones.
            share = min(most, left // (len(wishes) - index))
            left -= share
            if share:
                shares[tenant] = share
        return shares

    def spend(self, promoted: Mapping[TenantId, int], now_us: int) -> None:
        """So many jobs of each tenant have moved, out of their shares."""
        for tenant, jobs in promoted.items():
            self._all.spend(jobs, now_us)
            self._tenants[tenant].spend(jobs, now_us)

    def _left(self, tenant: TenantId, now_us: int) -> int:
        allowance = self._tenants.get(tenant)
        if allowance is None:
            allowance = Allowance(self._caps.tenant_jobs_per_second, now_us)
            self._tenants[tenant] = allowance
        return allowance.left(now_us)

    def _forget_full(self, now_us: int) -> None:
        """Tenants that have not been promoted for a while are like new ones."""
        full = [tenant for tenant, one in self._tenants.items() if one.is_full(now_us)]
        for tenant in full:
            del self._tenants[tenant]
