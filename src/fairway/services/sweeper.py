"""Finds what nobody told us of: late commits, lost hints, jobs that fell out of a full window.

It walks the heads of all streams in the store. A head that is neither in its window nor leased is
news. Whatever was missed becomes a head sooner or later, so nothing is missed for long.
"""

from __future__ import annotations

from fairway.runtime.loops import pause
from fairway.services.dispatcher import Dispatcher
from fairway.services.ownership import Ownership
from fairway.store import backlog as store
from fairway.store.database import Database

ALONE_SECONDS = 5.0
WITH_PEERS_SECONDS = 1.0
SLICE = 1_000


class Sweeper:
    def __init__(self, database: Database, dispatcher: Dispatcher, ownership: Ownership) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._ownership = ownership

    async def run_once(self, now_us: int) -> float:
        for shard in list(self._dispatcher.open_shards):
            await self._sweep(shard)
        self._dispatcher.backlog.prune()
        return WITH_PEERS_SECONDS if self._ownership.has_peers else ALONE_SECONDS

    async def _sweep(self, shard: int) -> None:
        async with self._database.hot() as connection:
            heads = await store.streams_with_work(connection, shard)
        backlog, leases = self._dispatcher.backlog, self._dispatcher.leases
        if shard not in self._dispatcher.open_shards:
            return
        for place, (key, first) in enumerate(heads.items()):
            if place % SLICE == SLICE - 1:
                await pause(0)  # a hundred thousand streams must not hold up a grant
                if shard not in self._dispatcher.open_shards:
                    return
            if first not in leases and not backlog.knows(key, first):
                backlog.noticed(key, first)
        self._dispatcher.want_reads()
