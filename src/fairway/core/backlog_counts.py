"""Questions about the backlog in memory, and the counts they are answered from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairway.core.job import due_ms_of
from fairway.core.tenant_backlog import TenantBacklog


class BacklogCounts:
    """What is known of every (pool, tenant) with streams here."""

    def __init__(self) -> None:
        self._tenants: dict[tuple[int, int], TenantBacklog] = {}

    def depth(self, tenant: int, pools: Iterable[int]) -> int:
        """Queued jobs of a tenant over these pools."""
        found = (self._tenants.get((pool, tenant)) for pool in pools)
        return sum(backlog.depth for backlog in found if backlog)

    def depth_of_pool(self, pool: int) -> int:
        return sum(b.depth for (number, _), b in self._tenants.items() if number == pool)

    def oldest_ms(self, pool: int) -> int | None:
        """Since when the oldest job at the head of any window of this pool may run."""
        heads = [
            due_ms_of(stream.window[0])
            for (number, _), backlog in self._tenants.items()
            if number == pool and backlog.ready
            for stream in backlog.streams.values()
            if stream.window
        ]
        return min(heads) if heads else None

    def counted(self, depths: dict[tuple[int, int], int]) -> None:
        """Depths by (tenant, pool) as the store has them, taken once at a take-over."""
        for (tenant, pool), depth in depths.items():
            backlog = self._tenants.get((pool, tenant))
            if backlog is not None:
                backlog.depth = max(depth, backlog.ready)

    def ready(self, pool: int, tenant: int) -> int:
        backlog = self._tenants.get((pool, tenant))
        return backlog.ready if backlog else 0

    def awake(self) -> Iterator[tuple[int, int]]:
        """Every (pool, tenant) with jobs in its windows."""
        return (key for key, backlog in self._tenants.items() if backlog.ready)
