"""Gives events their positions: from the inbox to the tenants' logs, for the shards we own.

Whatever happens writes to the inbox in its own transaction, without a lock and without an order.
One loop of the shard's owner, fenced by its term, takes what is committed and adds it to the logs:
so positions have no gaps, and nobody sees a later one before an earlier one. Tenants take turns, so
many events each: a flood of one delays nobody, and what cannot be moved is set aside alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from fairway.core.ids import ShardId, TenantId, Term
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.bad_rows import Aside, each_apart, in_each_shard
from fairway.services.busy_shards import busy_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.sessions.sessions import End
from fairway.store.connections.database import Database
from fairway.store.connections.error_classes import reason_of
from fairway.store.events import inbox
from fairway.store.events.inbox import Moved
from fairway.store.events.log import CHUNK_EVENTS_MAX

log = logger("events")

TENANTS_PER_ROUND = 500  # each costs a row of the log and one of the heads, be it for one event
EVENTS_PER_ROUND = 5_000  # of all its tenants: some ten milliseconds of the store's
GATHER_US = 20_000  # between two looks, however often it is woken
BUSY_US = 20_000  # something was moved, so more may come
ASKED_US = 100_000  # somebody in this shard wants events of its jobs
IDLE_US = 1_000_000  # notices are rare
IDLE_DUE_US = 750_000  # a rest may end so soon, with those of others (`runtime/loops.py`)
FAR_US = 1 << 62
BEFORE_ALL = TenantId(-1)


class Sequencer:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        directory: Directory,
        metrics: Metrics,
        *,
        tenant_shards: TenantShards,
        wake: Callable[[], None],
        on_moved: Callable[[Mapping[TenantId, int]], None],
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._directory = directory
        self._metrics = metrics
        self._tenant_shards = tenant_shards
        self._wake = wake
        self._on_moved = on_moved  # tenants, and where their logs end now
        self._after: dict[ShardId, TenantId] = {}  # whose turn was last, of very many
        self._looked_us: dict[ShardId, int] = {}
        self._due_us: dict[ShardId, int] = {}  # when to look again
        self._aside: Aside[TenantId] = Aside()

    def written(self, shard: ShardId) -> None:
        """Jobs that somebody wants to hear of are on disk: their events are in the inbox."""
        soon_us = self._looked_us.get(shard, 0) + GATHER_US
        if self._dispatcher.owns(shard) and self._due_us.get(shard, FAR_US) > soon_us:
            self._due_us[shard] = soon_us
            self._wake()

    def ended(self, ends: Sequence[End]) -> None:
        """Ends of runs are on disk: their events too, where they are asked for."""
        if asking := self._directory.with_job_events:
            for shard in {end.lease.shard for end in ends if end.lease.job.tenant in asking}:
                self.written(shard)

    async def run_once(self, now_us: int) -> float:
        terms = dict(self._dispatcher.terms())
        for shard in self._due_us.keys() - terms.keys():
            del self._due_us[shard]
        due = [shard for shard in terms if self._due_us.get(shard, 0) <= now_us]
        for shard in due:  # what is written from now on may bring the next look nearer
            self._due_us.pop(shard, None)
        busy = await busy_shards(self._database, "with_news", due)
        asked = self._asked_shards()
        for shard in set(due).difference(busy):
            self._looked_us[shard] = now_us
            self._rest(shard, IDLE_US, now_us, asked)
        await in_each_shard(busy, lambda one: self._look(one, terms[one], now_us, asked))
        rest_us = min((max(0, at - now_us) for at in self._due_us.values()), default=IDLE_US)
        return (IDLE_US if rest_us >= IDLE_DUE_US else rest_us) / 1e6

    async def _look(
        self, shard: ShardId, term: Term, now_us: int, asked: Collection[ShardId]
    ) -> None:
        self._rest(shard, await self._round(shard, term, now_us), now_us, asked)

    def _rest(self, shard: ShardId, rest_us: int, now_us: int, asked: Collection[ShardId]) -> None:
        """Until the next look; what was written meanwhile may have brought that nearer."""
        if rest_us == IDLE_US:
            rest_us = ASKED_US if shard in asked else IDLE_DUE_US
        self._due_us.setdefault(shard, now_us + rest_us)

    def _asked_shards(self) -> set[ShardId]:
        """Those of tenants that want to hear what becomes of their jobs."""
        return {self._tenant_shards.of(one) for one in self._directory.with_job_events}

    async def _round(self, shard: ShardId, term: Term, now_us: int) -> int:
        """A turn of every tenant that has something; answers when to look again."""
        self._looked_us[shard] = now_us
        after = self._after.pop(shard, BEFORE_ALL)
        async with self._database.hot(at=shard) as connection:
            found = await inbox.tenants_with_news(connection, shard, after, TENANTS_PER_ROUND)
        tenants = [one for one in found if self._is_due(one, shard, now_us)]
        if len(found) == TENANTS_PER_ROUND:
            self._after[shard] = found[-1]
        is_more = bool(tenants) and await self._move_all(shard, term, tenants, now_us)
        if is_more or self._after.get(shard, after) != BEFORE_ALL:
            return 0
        return BUSY_US if tenants else IDLE_US

    def _is_due(self, tenant: TenantId, shard: ShardId, now_us: int) -> bool:
        """What came too late to where a tenant was is brought along, and has its position there. Of
        one that moves, older events may be there already: what is here goes after them."""
        if self._tenant_shards.is_moving(tenant) or self._tenant_shards.of(tenant) != shard:
            return False
        return not self._aside.holds(tenant, now_us)

    async def _move_all(
        self, shard: ShardId, term: Term, tenants: Sequence[TenantId], now_us: int
    ) -> bool:
        """Whether one of them has more than its turn."""
        each = min(EVENTS_PER_ROUND // len(tenants), CHUNK_EVENTS_MAX)
        moved: list[Moved] = []

        async def move(some: Sequence[TenantId]) -> None:
            async with self._database.hot(at=shard) as connection:
                moved.extend(await inbox.move_events(connection, shard, term, some, each))

        await each_apart(tenants, move, partial(self._set_aside, now_us))
        self._on_moved({one.tenant: one.last_position for one in moved})
        counts = [one.last_position - one.first_position + 1 for one in moved]
        self._metrics.events_logged.inc(sum(counts))
        return max(counts, default=0) >= each

    def _set_aside(self, now_us: int, tenant: TenantId, error: Exception) -> None:
        self._aside.put(tenant, now_us)
        self._metrics.rows_set_aside.labels("events").inc()
        log.error("events cannot be moved; set aside", tenant=tenant, error=reason_of(error))
