"""Fair share of every pool, made when a pool is first met: operators add pools while all runs."""

from __future__ import annotations

from fairway.core.fair_share.fairness import Entitlement, PoolShare, ShareSettings
from fairway.core.ids import PoolId
from fairway.core.pools import Pool, PoolTable
from fairway.core.tenant import Tenant

HEADROOM_SHARE = 60  # per mille; where jobs are short, waiting for one to end is what people notice
# free ones that wait with jobs in memory; the slice serves them in seconds
FREE_TENANTS_IN_MEMORY = 512


class Shares(dict[PoolId, PoolShare]):
    """By the pool's number. A pool that nobody told us of yet is shared out by default terms."""

    def __init__(self, pools: PoolTable, scheduler: type[PoolShare] = PoolShare) -> None:
        super().__init__()
        self._pools = pools
        self._scheduler = scheduler
        for number in pools.by_number:
            self[number] = scheduler(settings_of(pools.by_number[number]))

    def __missing__(self, number: PoolId) -> PoolShare:
        share = self[number] = self._scheduler(settings_of(self._pools.by_number[number]))
        return share

    def is_crowded(self, number: PoolId) -> bool:
        """Whether a pool has so many free tenants waiting that more of them may wait outside."""
        return self[number].standings.free_waiting >= FREE_TENANTS_IN_MEMORY

    def set_entitlement(self, tenant: Tenant, now_us: int) -> None:
        """A tenant's terms in every pool that is known."""
        reserved = dict(tenant.reserved)
        for number, pool in self._pools.by_number.items():
            terms = Entitlement(
                weight=tenant.weight,
                group=tenant.fair_group,
                floor_share=tenant.floor_share,
                cap=tenant.cap,
                reserved=reserved.get(pool.name, 0),
            )
            self[number].set_entitlement(tenant.id, terms, now_us)


def settings_of(pool: Pool) -> ShareSettings:
    return ShareSettings(
        first_estimate_us=round(pool.estimate_seconds * 1e6),
        floors_max_share=pool.reserved_share,
        headroom_share=HEADROOM_SHARE if pool.lease_mode == "lazy" else 0,
    )
