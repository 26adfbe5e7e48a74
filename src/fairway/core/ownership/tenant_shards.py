"""In which shard a tenant's rows are: the one place that knows how that is found.

A platform is founded with so many shards, and a tenant without a shard of its own has the one of
its number by that count, for ever: ids are dense, so that spreads them evenly. Whoever was made
after the shards became more, or was given one, has a shard written with it (`tenants.shard`), which
is learnt with the tenant itself: a server that knows a tenant knows where it is.

The id of a job names the shard that it was accepted in, which is where its row is: unless the rows
of its tenant are in another one since. So where a job is, is asked by its tenant and its id.

This says nothing of who owns a shard, and writes nothing down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fairway.core.ids import ShardId, TenantId, shard_of
from fairway.core.tenant import tenant_moving


class TenantShards:
    """Where each tenant is, as far as this server has heard."""

    def __init__(self, founded: int, count: int | None = None) -> None:
        self._founded = founded  # how many there were at first
        self._count = max(founded, count or 0)
        self._placed: dict[TenantId, ShardId] = {}  # those with a shard of their own
        self._moved: dict[TenantId, ShardId] = {}  # of these, those that were in another before
        self._moving: set[TenantId] = set()  # rows of these may be in two shards

    @property
    def founded(self) -> int:
        """How many there were at first, by which tenants without a shard of their own are found."""
        return self._founded

    @property
    def count(self) -> int:
        """How many shards there are now; their numbers begin with 0. They never become fewer."""
        return self._count

    @property
    def to_be_owned(self) -> int:
        """How many of them have an owner when all is well: where a tenant is moved to has none."""
        return self._count - len(self._moving)

    def of(self, tenant: TenantId) -> ShardId:
        """The home shard of a tenant; of one that is not known yet, the one of its number."""
        placed = self._placed.get(tenant)
        return ShardId(tenant % self._founded) if placed is None else placed

    def taking(self, tenant: TenantId) -> ShardId:
        """Its home, for somebody who writes anything new there: while it is moved nobody does, also
        not a request that was let in before. Its keys are in two shards: one could count twice."""
        if tenant in self._moving:
            raise tenant_moving()
        return self.of(tenant)

    def still_takes(self, tenant: TenantId, shard: ShardId) -> None:
        """Refuse what would be written of a tenant to a shard that is its home no longer, or not
        for long. Whoever writes asks once it has its connection: who has stood still meanwhile
        learns of moves with that, and not before (`store/connections/move_fence.py`)."""
        if tenant in self._moving or self.of(tenant) != shard:
            raise tenant_moving()

    def is_out_of_place(self, tenant: TenantId, job: str, shard: ShardId | None) -> bool:
        """Whether a new job must not be written to this shard; None: to the one its id names."""
        if tenant in self._moving:
            return True
        return self.of_job(tenant, job) != (shard_of(job) if shard is None else shard)

    def of_job(self, tenant: TenantId, job: str) -> ShardId:
        """Where a job's row is. Of a tenant that is not known yet its id tells."""
        moved = self._moved.get(tenant)
        return shard_of(job) if moved is None else moved

    def moved(self, tenant: TenantId) -> ShardId | None:
        """Where all rows of a tenant are, whatever ids say; None: where they say."""
        return self._moved.get(tenant)

    def elsewhere(self, tenant: TenantId, job: str) -> ShardId | None:
        """Where a job's row is, if that is not where its id says."""
        moved = self._moved.get(tenant)
        return None if moved is None or moved == shard_of(job) else moved

    def any_elsewhere(self, tenant: TenantId, jobs: Iterable[str]) -> bool:
        moved = self._moved.get(tenant)
        return moved is not None and any(shard_of(job) != moved for job in jobs)

    def is_moving(self, tenant: TenantId) -> bool:
        """Whether its rows may be in two shards: that one is not found then says nothing."""
        return tenant in self._moving

    @property
    def any_moving(self) -> bool:
        return bool(self._moving)

    @property
    def all_moving(self) -> Collection[TenantId]:
        """Those of which rows may be in two shards."""
        return tuple(self._moving)

    @property
    def all_moved(self) -> Collection[TenantId]:
        """Those whose rows were in another shard before."""
        return tuple(self._moved)

    @property
    def any_moved(self) -> bool:
        """Whether ids alone may mislead. As a rule they do not, and nothing more is looked at."""
        return bool(self._moved)

    def learn(
        self,
        tenant: TenantId,
        shard: ShardId | None,
        moved_from: Collection[ShardId] = (),
        *,
        is_moving: bool = False,
    ) -> bool:
        """A tenant as it was read: its own shard, or None; and those that ids of its jobs name,
        where its rows are not any more. Answers whether they are elsewhere than it was known."""
        before = self._moved.get(tenant)
        (self._moving.add if is_moving else self._moving.discard)(tenant)
        if shard is None:
            self._placed.pop(tenant, None)
            return False
        self._placed[tenant] = shard
        self._count = max(self._count, shard + 1)
        if moved_from:
            self._moved[tenant] = shard
        return bool(moved_from) and before != shard

    def counted(self, count: int) -> None:
        """So many there are, as it was read just now."""
        self._count = max(self._count, count)
