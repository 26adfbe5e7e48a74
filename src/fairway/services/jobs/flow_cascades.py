"""Goes on with flows behind flows, where whoever ended a job stopped: in parts, by tenant in turn.

Most never come here: only what follows from an end over more steps than one transaction takes.
"""

from __future__ import annotations

from fairway.core.ids import ShardId, TenantId
from fairway.services.bad_rows import in_each_shard
from fairway.services.busy_shards import busy_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.flow_news import FlowNews
from fairway.services.jobs.watchers import Watchers
from fairway.store import flow_cascades as store
from fairway.store.connections.database import Database
from fairway.store.flow_locks import FlowsBusy

REST_SECONDS = 1.0
TENANTS_PER_ROUND = 20
NOBODY = TenantId(0)  # below all


class FlowCascades:
    def __init__(self, database: Database, dispatcher: Dispatcher, watchers: Watchers) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._news = FlowNews(dispatcher, watchers)
        self._last: dict[ShardId, TenantId] = {}  # who had a turn last

    async def run_once(self, now_us: int) -> float:
        shards = self._dispatcher.open_shards()
        owing = await busy_shards(self._database, "with_flows_owed", shards)
        counts = await in_each_shard(owing, self._go_on)
        return 0.0 if any(counts) else REST_SECONDS

    async def _go_on(self, shard: ShardId) -> int:
        """So many tenants had a part of theirs counted."""
        done = 0
        async with self._database.background() as connection:
            for _ in range(TENANTS_PER_ROUND):
                after = self._last.get(shard, NOBODY)
                tenant = await store.next_owed_tenant(connection, shard, after)
                self._last[shard] = tenant or NOBODY
                if tenant is None:
                    break
                try:
                    effects = await store.count_owed(connection, shard, tenant)
                except FlowsBusy:
                    continue
                self._news.tell(shard, effects)
                done += 1
        return done
