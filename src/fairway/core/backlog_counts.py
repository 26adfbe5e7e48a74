"""Questions about the backlog in memory, and the counts they are answered from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

from fairway.core.job import due_ms_of
from fairway.core.streams import Stream
from fairway.core.tenant_backlog import TenantBacklog


class Survey:
    """What waits, by pool."""

    def __init__(self) -> None:
        self.depth: dict[int, int] = defaultdict(int)
        self.oldest_ms: dict[int, float] = defaultdict(lambda: math.inf)  # at the head of a window


class BacklogCounts:
    """What is known of every (pool, tenant) with streams here."""

    def __init__(self) -> None:
        self._tenants: dict[tuple[int, int], TenantBacklog] = {}

    def depth(self, tenant: int, pools: Iterable[int]) -> int:
        """Queued jobs of a tenant over these pools."""
        found = (self._tenants.get((pool, tenant)) for pool in pools)
        return sum(backlog.depth for backlog in found if backlog)

    def streams_of(self, tenant: int, pools: Iterable[int]) -> Iterator[Stream]:
        """A tenant's streams over these pools."""
        found = (self._tenants.get((pool, tenant)) for pool in pools)
        return (stream for backlog in found if backlog for stream in backlog.streams.values())

    def places(self) -> list[tuple[int, int]]:
        """Every (pool, tenant) with streams here."""
        return list(self._tenants)

    def survey(self, places: Iterable[tuple[int, int]], found: Survey) -> None:
        """Add what waits at these places; a look at all of them is taken in slices."""
        for place in places:
            backlog = self._tenants.get(place)
            if backlog is not None:
                found.depth[place[0]] += backlog.depth
                if backlog.ready:
                    heads = [due_ms_of(s.window[0]) for s in backlog.streams.values() if s.window]
                    found.oldest_ms[place[0]] = min([*heads, found.oldest_ms[place[0]]])

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
