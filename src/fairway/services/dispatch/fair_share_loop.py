"""Keeps fair share going: its tick, its memory on disk, and what each tenant got of late.

Debts are written every few seconds, so a failover forgets at most that much. The pass over the
tenants is cut into slices, so that a hundred thousand of them do not hold up a single grant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from fairway.core.fair_share.history import ShareHistory
from fairway.core.ids import PoolId, ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.clock import Clock
from fairway.runtime.loops import Effort, common_rest, in_slices
from fairway.services.bad_rows import in_each_shard
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.store import fair_share as store
from fairway.store.connections.database import Database
from fairway.store.fair_share import Debt

TICK_SECONDS = 0.1
IDLE_SECONDS = 1.0  # nothing runs that could outlive anything; who is granted a slot ticks first
PASS_US = 5_000_000


class FairShareLoop:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        clock: Clock,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._clock = clock
        self._tenant_shards = tenant_shards
        self._pass_due_us = 0
        self._unwritten: dict[tuple[PoolId, TenantId], Debt] = {}
        self.history: dict[PoolId, ShareHistory] = defaultdict(ShareHistory)

    async def run_once(self, now_us: int) -> float:
        """Start charging what outlived its prepayment; now and then, look at every tenant."""
        is_running = False
        for _, share in self._dispatcher.all_shares():
            share.tick(now_us)
            is_running |= share.is_running
        if now_us >= self._pass_due_us:
            effort = Effort()
            self._pass_due_us = now_us + PASS_US  # also when what follows fails
            await self._look_at_all()
            await self._write()
            self._pass_due_us = now_us + round(effort.rest_seconds(PASS_US / 1e6) * 1e6)
        return common_rest(TICK_SECONDS) if is_running else IDLE_SECONDS

    async def take_over(self, shards: Collection[ShardId]) -> None:
        """What the tenants of these shards owe, by their earlier owners' word."""
        debts: list[Debt] = []
        for some in self._database.batches_of(sorted(shards)):
            async with self._database.hot(at=some[0]) as connection:
                debts += await store.read_debts(connection, some)
        by_pool: dict[PoolId, list[tuple[TenantId, int]]] = defaultdict(list)
        for debt in debts:
            by_pool[debt.pool].append((debt.tenant, debt.debt_us))
        for pool, share in self._dispatcher.all_shares():
            if rows := by_pool.get(pool):
                share.restore(rows, self._clock.now_us())

    async def _look_at_all(self) -> None:
        for pool, share in self._dispatcher.all_shares():
            history = self.history[pool]
            history.turn(self._clock.now_us())
            async for some in in_slices(share.tenants()):
                now_us = self._clock.now_us()
                for tenant, debt_us in share.checkpoint(now_us, some):
                    self._unwritten[pool, tenant] = Debt(pool, tenant, debt_us)
                history.note(share.standings.totals(some, now_us))

    async def _write(self) -> None:
        """Each shard's debts with its term; the free group's with every shard."""
        debts, self._unwritten = self._unwritten, {}
        terms = dict(self._dispatcher.terms())
        by_shard: dict[ShardId, list[Debt]] = defaultdict(list)
        for debt in debts.values():
            homes = [self._tenant_shards.of(debt.tenant)] if debt.tenant else terms
            for shard in homes:
                by_shard[shard].append(debt)

        async def write(shard: ShardId) -> None:
            async with self._database.hot(at=shard) as connection:
                await store.write_debts(connection, shard, terms[shard], by_shard[shard])

        try:
            await in_each_shard(self._answering(by_shard.keys() & terms.keys()), write)
        except Exception:  # whatever it was, these debts are still to be written
            self._unwritten = debts | self._unwritten
            raise

    def _answering(self, shards: Collection[ShardId]) -> list[ShardId]:
        """Those on nodes that answer; what is owed in the others is counted anew in the end."""
        return [shard for shard in shards if not self._database.is_silent(shard)]
