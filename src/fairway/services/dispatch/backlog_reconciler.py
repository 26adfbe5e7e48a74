"""Finds what nobody told us of: late commits, lost hints, jobs that fell out of a full window.

It walks the heads of all streams in the store. A head that is neither in its window nor leased is
news. Whatever was missed becomes a head sooner or later, so nothing is missed for long.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.core.ids import ShardId
from fairway.runtime.loops import Effort, pause, step_by_step
from fairway.services.busy_shards import busy_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.store import backlog as store
from fairway.store.connections.database import Database

ALONE_SECONDS = 5.0
WITH_PEERS_SECONDS = 1.0
HINTS_COUNT_SECONDS = 60.0
PAGE = 100
PAGE_REST_SECONDS = 0.01


class BacklogReconciler:
    def __init__(
        self, database: Database, dispatcher: Dispatcher, has_peers: Callable[[], bool]
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._windows = dispatcher.windows()
        self._has_peers = has_peers  # then hints can be lost between servers

    async def run_once(self, now_us: int) -> float:
        effort = Effort()
        shards = self._dispatcher.open_shards()
        for shard in await busy_shards(self._database, "queued", shards):
            if self._dispatcher.has_windows(shard):
                await self._sweep(shard)
        await step_by_step(self._windows.pruning())
        if self._has_peers() or self._others_submit(now_us):
            return WITH_PEERS_SECONDS
        return effort.rest_seconds(ALONE_SECONDS)

    def _others_submit(self, now_us: int) -> bool:
        """Whether servers that own nothing take jobs in, too: their hints may be lost."""
        heard_us = self._dispatcher.hinted_us()
        return heard_us is not None and now_us - heard_us < HINTS_COUNT_SECONDS * 1e6

    async def _sweep(self, shard: ShardId) -> None:
        """A page at a time: a hundred thousand streams must not hold up a grant."""
        walk = store.StreamWalk(shard, PAGE)
        while not walk.is_over:
            async with self._database.hot(at=shard) as connection:
                heads = await walk.next_page(connection)
            if not self._dispatcher.is_open(shard):
                return
            self._windows.swept(heads, shard)
            await pause(PAGE_REST_SECONDS)
