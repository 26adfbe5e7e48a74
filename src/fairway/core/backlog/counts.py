"""Questions about the backlog in memory, and the counts they are answered from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from fairway.core.backlog.streams import Stream
from fairway.core.backlog.tenant_backlog import TenantBacklogs
from fairway.core.ids import PoolId, TenantId
from fairway.core.job import due_ms_of
from fairway.core.time_slices import in_steps


class Survey:
    """What waits, by pool."""

    def __init__(self) -> None:
        self.depth: dict[PoolId, int] = defaultdict(int)
        # at the head of a window
        self.oldest_ms: dict[PoolId, float] = defaultdict(lambda: math.inf)


class BacklogCounts:
    """What is known of every (pool, tenant) with streams here."""

    def __init__(self, tenants: TenantBacklogs) -> None:
        self._tenants = tenants

    def depth(self, tenant: TenantId, pools: Iterable[PoolId]) -> int:
        """Queued jobs of a tenant over these pools."""
        found = (self._tenants.get((pool, tenant)) for pool in pools)
        return sum(backlog.depth for backlog in found if backlog)

    def streams_of(self, tenant: TenantId, pools: Iterable[PoolId]) -> Iterator[Stream]:
        """A tenant's streams over these pools."""
        found = (self._tenants.get((pool, tenant)) for pool in pools)
        return (stream for backlog in found if backlog for stream in backlog.streams.values())

    def pool_tenants(self) -> list[tuple[PoolId, TenantId]]:
        """Every (pool, tenant) with streams here."""
        return list(self._tenants)

    def surveying(self, found: Survey) -> Iterator[None]:
        """Add what waits, a step at a time."""
        return in_steps(
            chain.from_iterable(
                self._survey(pool_tenant, found) for pool_tenant in self.pool_tenants()
            )
        )

    def _survey(self, pool_tenant: tuple[PoolId, TenantId], found: Survey) -> Iterator[int]:
        """Yields how much was looked at since; others may go on then."""
        if (backlog := self._tenants.get(pool_tenant)) is None:
            return
        pool, oldest_ms = pool_tenant[0], found.oldest_ms
        found.depth[pool] += backlog.depth
        if not backlog.ready:
            yield 1
            return
        for stream in list(backlog.streams.values()):
            yield 1
            if stream.window:
                oldest_ms[pool] = min(oldest_ms[pool], due_ms_of(stream.window[0]))

    def counted(self, depths: dict[tuple[TenantId, PoolId], int]) -> None:
        """Depths by (tenant, pool) as the store has them, taken once at a take-over."""
        for (tenant, pool), depth in depths.items():
            backlog = self._tenants.get((pool, tenant))
            if backlog is not None:
                backlog.depth = max(depth, backlog.ready)

    def ready(self, pool: PoolId, tenant: TenantId) -> int:
        backlog = self._tenants.get((pool, tenant))
        return backlog.ready if backlog else 0

    def awake(self) -> Iterator[tuple[PoolId, TenantId]]:
        """Every (pool, tenant) with jobs in its windows."""
        return (key for key, backlog in self._tenants.items() if backlog.ready)
