"""In which shard a tenant's rows are: the one place that knows how that is found.

A platform is founded with so many shards, and a tenant without a shard of its own has the one of
its number by that count, for ever: ids are dense, so that spreads them evenly. Whoever was made
after the shards became more, or was given one, has a shard written with it (`tenants.shard`), which
is learnt with the tenant itself: a server that knows a tenant knows where it is. No tenant changes
its shard: ids of its jobs name it.

This says nothing of who owns a shard, and writes nothing down.
"""

from __future__ import annotations

from fairway.core.ids import ShardId, TenantId


class TenantShards:
    """Where each tenant is, as far as this server has heard."""

    def __init__(self, founded: int, count: int | None = None) -> None:
        self._founded = founded  # how many there were at first
        self._count = max(founded, count or 0)
        self._placed: dict[TenantId, ShardId] = {}  # those with a shard of their own

    @property
    def founded(self) -> int:
        """How many there were at first, by which tenants without a shard of their own are found."""
        return self._founded

    @property
    def count(self) -> int:
        """How many shards there are now; their numbers begin with 0. They never become fewer."""
        return self._count

    def of(self, tenant: TenantId) -> ShardId:
        """The home shard of a tenant; of one that is not known yet, the one of its number."""
        placed = self._placed.get(tenant)
        return ShardId(tenant % self._founded) if placed is None else placed

    def learn(self, tenant: TenantId, shard: ShardId | None) -> None:
        """A tenant as it was read: its own shard, or None."""
        if shard is None:
            self._placed.pop(tenant, None)
        else:
            self._placed[tenant] = shard
            self._count = max(self._count, shard + 1)

    def counted(self, count: int) -> None:
        """So many there are, as it was read just now."""
        self._count = max(self._count, count)
