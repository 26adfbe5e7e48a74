"""Shards on their way to another server: what is granted no more, and what must be on disk first.

A part of the dispatcher, got from it by `Dispatcher.letting_go`; no I/O. A shard that is suspended
is owned as ever: workers report, ends are written, only nothing of it is granted. Once all of it is
on disk its owner closes it and lets it go; else it is resumed, as if nothing had been.
"""

from __future__ import annotations

from collections.abc import Collection

from fairway.core.backlog.start_rates import pack_rates, unpack_rates
from fairway.core.ids import FIRST_TERM, PoolId, ShardId, TenantId, Term
from fairway.runtime.clock import Clock
from fairway.services.dispatch.granting import Granting, Memory
from fairway.services.sessions.sessions import Lease


class LettingGo:
    def __init__(self, memory: Memory, granting: Granting, clock: Clock) -> None:
        self._shards = memory.shards
        self._sessions = memory.sessions
        self._leases = memory.leases
        self._backlog = memory.backlog
        self._granting = granting
        self._clock = clock

    def counted(self, shards: int) -> None:
        """So many there are in the cluster; a tenant may be at home in any of them."""
        self._shards.tenants.counted(shards)

    def suspend(self, shards: Collection[ShardId]) -> None:
        """Nothing more of these is granted."""
        self._shards.suspend(shards)

    def resume(self, shards: Collection[ShardId]) -> None:
        """They stay here: what waits in them is granted again."""
        self._shards.resume(shards)
        self._wake(shards)

    def trust(self, until_us: int, shards: Collection[ShardId]) -> None:
        """These are ours until then; what waits in one that was in doubt is granted again."""
        now_us = self._clock.now_us()
        doubtful = [one for one in shards if not self._shards.may_grant(one, now_us)]
        self._shards.trust(until_us, shards)
        if doubtful:
            self._wake(doubtful)

    def whole_on_disk(self, handed_over: Collection[ShardId]) -> set[ShardId]:
        """Shards of which the next owner finds all in the store: who runs what, and what ended.

        Of one that was not opened yet nobody knows: unless it was handed over like that.
        """
        unsure = {lease.shard for lease in self._leases.values() if not lease.written}
        unsure |= self._backlog.underway.unrecorded_shards()
        known = self._shards.open | set(handed_over)
        return (known & self._shards.terms.keys()) - unsure

    def unwritten(self, shards: Collection[ShardId]) -> list[Lease]:
        """Leases of these that a worker was given and the store does not know.

        Grants that no worker heard of and the store does not know are as if they never were: their
        jobs wait as they did, should the shard stay here.
        """
        now_us = self._clock.now_us()
        for session in self._sessions.values():
            unheard = [*filter(self._leases.stands, session.withdraw_unwritten(shards))]
            self._leases.release(unheard, now_us)
            for lease in unheard:
                self._backlog.put_back(lease.job, now_us)
        leases = self._leases.values()
        return [lease for lease in leases if not lease.written and lease.shard in shards]

    def is_ours_to_answer(self, shard: ShardId) -> bool:
        """Whether a report without a lease is: of another's shard its owner decides, and its worker
        tells that one once it hears of it. Should the shard be ours again first, nobody would."""
        is_ours = shard in self._shards.terms
        if not is_ours:
            self._shards.unanswered.add(shard)
        return is_ours

    def may_judge(self, tenant: TenantId, job: str) -> bool:
        """False while its end is on its way to disk, and in shards that are not (yet) known."""
        is_known = self._shards.restored_term(self._shards.tenants.of_job(tenant, job)) is not None
        return is_known and job not in self._backlog.underway.unrecorded_ids

    def unrecorded(self) -> set[str]:
        """Jobs whose ends are on their way to disk."""
        return self._backlog.underway.unrecorded_ids

    def forget_starts(self, shard: ShardId, term: Term) -> None:
        """A shard came to us: whoever owned it before may have let jobs of any key start."""
        if term > FIRST_TERM:
            self._backlog.limited.owner_since(shard, self._shards.tenants, self._clock.now_us())

    def save_starts(self, shards: Collection[ShardId]) -> dict[ShardId, bytes]:
        """What started of late by keys with a rate, for the next owner of each."""
        now_us, rates = self._clock.now_us(), self._backlog.limited.rates
        saved = rates.save(shards, self._shards.tenants, now_us)
        return {shard: pack_rates(one) for shard, one in saved.items()}

    def restore_starts(self, shard: ShardId, packed: bytes, ago_us: int) -> None:
        """As its last owner saved them, so long ago: nothing need be closed for what it knew."""
        saved_us = self._clock.now_us() - max(ago_us, 0)
        self._backlog.limited.rates.restore(
            shard, self._shards.tenants, unpack_rates(packed), saved_us
        )

    def _wake(self, shards: Collection[ShardId]) -> None:
        homes, pool_tenants = set(shards), self._backlog.counts.pool_tenants()
        self._granting.wake([one for one in pool_tenants if self._home(one) in homes])

    def _home(self, pool_tenant: tuple[PoolId, TenantId]) -> ShardId:
        return self._shards.tenants.of(pool_tenant[1])
