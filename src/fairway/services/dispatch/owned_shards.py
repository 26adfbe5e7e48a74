"""The shards that this server owns: under which term, how far each is taken over, for how long.

Facts alone, of this server's own knowledge: whether a term still holds is the store's to say
(`services/ownership/`). Each shard is trusted for itself: one whose term could not be renewed, or
which is being handed over, is granted nothing of, and holds up no other. Nothing here knows of jobs
or workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from fairway.core.backlog.streams import StreamKey
from fairway.core.ids import ShardId, TenantId, Term
from fairway.core.job import QueuedJob
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.tenant import Tenant


class OwnedShards:
    def __init__(self, tenant_shards: TenantShards) -> None:
        self.tenants = tenant_shards  # in which shard each is
        self.terms: dict[ShardId, Term] = {}  # shard → the term under which this server owns it
        self.terms_view: Mapping[ShardId, Term] = MappingProxyType(self.terms)
        self.open: set[ShardId] = set()  # owned, and past the adoption of running leases
        self.pulled: set[ShardId] = set()  # open; their jobs come from the store, not from windows
        self.restoring: set[ShardId] = set()  # owned; their written leases are not all here yet
        self.delayed: set[ShardId] = set()  # of these, what could not be read: nobody waits for it
        self.all_restored = asyncio.Event()
        self.all_restored.set()
        self.claims = 0  # so far, of shards of which workers must say what they run
        self.unanswered: set[ShardId] = set()  # another's when ends of its jobs were told here
        self.suspended: set[ShardId] = set()  # owned; being handed over, so nothing is granted
        self._trust_us: dict[ShardId, int] = {}  # shard → until when it is surely ours
        self._trust_of_new_us = 0  # of shards that are claimed from now on
        self.trusted_until_us = 0  # until here each of them may be granted from,
        self.last_trusted_until_us = 0  # and until here some; afterwards another may own them all

    def learn(self, tenant: Tenant) -> bool:
        """Where it is; answers whether that is elsewhere than before."""
        is_moving = tenant.moving_to is not None
        return self.tenants.learn(tenant.id, tenant.shard, tenant.moved_from, is_moving=is_moving)

    def claim(self, shard: ShardId, term: Term, *, is_whole: bool = False) -> bool:
        """Ours from now on; its leases must be found before anybody is judged.

        Answers whether workers have nothing to say of it first: all is on disk, and no report of an
        end went unanswered here, which they repeat with a hello alone.
        """
        is_whole = is_whole and shard not in self.unanswered
        self.unanswered.discard(shard)
        self.terms[shard] = term
        self.open.discard(shard)  # nothing of an earlier term holds
        self.pulled.discard(shard)
        self.claims += not is_whole
        self.delayed.discard(shard)
        self.restoring.add(shard)
        self.all_restored.clear()
        self.suspended.discard(shard)
        self._trust_us[shard] = self._trust_of_new_us
        self._review_trust()
        return is_whole

    def restored(self, shard: ShardId) -> bool:
        """Every written lease of it is here, or it is another's; answers whether it was delayed."""
        was_delayed = shard in self.delayed
        self.restoring.discard(shard)
        self.delayed.discard(shard)
        self._look_at_restoring()
        return was_delayed

    def delay(self, shard: ShardId) -> None:
        """Its leases cannot be read now: it waits alone, and workers are heard meanwhile."""
        self.delayed.update(self.restoring & {shard})
        self._look_at_restoring()

    def _look_at_restoring(self) -> None:
        if self.restoring <= self.delayed:
            self.all_restored.set()

    def open_for_pulls(self, shard: ShardId) -> None:
        """Its jobs go out as those of an open one do, and none of them waits in memory."""
        self.open.add(shard)
        self.pulled.add(shard)

    def has_windows(self, shard: ShardId) -> bool:
        """Whether its jobs are given out from windows in memory, as an owner's are."""
        return shard in self.open and shard not in self.pulled

    def of_windows(
        self, shards: Collection[ShardId], jobs: Sequence[QueuedJob]
    ) -> Sequence[QueuedJob]:
        """Of the jobs of these shards, those that are given out from windows."""
        if all(map(self.has_windows, shards)):
            return jobs
        shard_of = self.tenants.of_job
        return [job for job in jobs if self.has_windows(shard_of(job.tenant, job.id))]

    def at_home(self, shard: ShardId, jobs: Sequence[QueuedJob]) -> Sequence[QueuedJob]:
        """Without those that came too late to where their tenant was: they are brought to it."""
        if not self.tenants.any_moved:
            return jobs
        return [job for job in jobs if self.tenants.of_job(job.tenant, job.id) == shard]

    def heads_in(
        self, shard: ShardId, firsts: Mapping[StreamKey, str]
    ) -> Iterator[tuple[StreamKey, str]]:
        """Of streams and their oldest jobs, those that are there: who told may know of no move."""
        of_job = self.tenants.of_job
        return (one for one in firsts.items() if of_job(one[0].tenant, one[1]) == shard)

    def close(self, *shards: ShardId) -> None:
        for shard in shards:
            self.open.discard(shard)
            self.pulled.discard(shard)
            self.restored(shard)
            self.terms.pop(shard, None)
            self.suspended.discard(shard)
        self._review_trust()

    def restored_term(self, shard: ShardId) -> Term | None:
        """Its term, once all of its written leases are here."""
        return None if shard in self.restoring else self.terms.get(shard)

    # -- trust -------------------------------------------------------------------------------

    def trust(self, until_us: int, shards: Collection[ShardId] | None = None) -> None:
        """Past this moment another server may own these; None: any, also those still to come."""
        if shards is None:
            self._trust_of_new_us = until_us
            shards = self.terms.keys()
        self._trust_us.update(dict.fromkeys(shards, until_us))
        self._review_trust()

    def suspend(self, shards: Collection[ShardId]) -> None:
        """Nothing is granted from these, until they are resumed, closed or claimed anew."""
        self.suspended.update(self.terms.keys() & set(shards))
        self._review_trust()

    def resume(self, shards: Collection[ShardId]) -> None:
        self.suspended.difference_update(shards)
        self._review_trust()

    def may_grant(self, shard: ShardId, now_us: int) -> bool:
        return shard not in self.suspended and now_us < self._until_us(shard)

    def may_grant_to(self, tenant: TenantId, now_us: int) -> bool:
        """Whether the tenant's home is among those that may be granted from."""
        return self.may_grant(self.tenants.of(tenant), now_us)

    def _until_us(self, shard: ShardId) -> int:
        return self._trust_us.get(shard, self._trust_of_new_us)

    def _review_trust(self) -> None:
        """Looked at with every grant, so it is counted when it changes."""
        self._trust_us = {one: us for one, us in self._trust_us.items() if one in self.terms}
        ends_us = [self._until_us(one) for one in self.terms if one not in self.suspended]
        self.last_trusted_until_us = max(ends_us, default=self._trust_of_new_us)
        is_whole = len(ends_us) == len(self.terms)
        self.trusted_until_us = min(ends_us, default=self._trust_of_new_us) if is_whole else 0
