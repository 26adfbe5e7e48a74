"""What becomes of jobs that waited for others, told to whoever runs jobs or waits for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from fairway.core.ids import JobId, ShardId, TenantId
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.watchers import Watchers
from fairway.store import flows
from fairway.store.connections.database import Connection


class FlowNews:
    def __init__(self, dispatcher: Dispatcher, watchers: Watchers) -> None:
        self._dispatcher = dispatcher
        self._watchers = watchers

    @asynccontextmanager
    async def counting(
        self, connection: Connection, shard: ShardId, keys: Iterable[tuple[TenantId, JobId]]
    ) -> AsyncIterator[None]:
        """A transaction in which these jobs may end, or come back; told when it is on disk."""
        async with flows.counting(connection, shard, keys) as effects:
            yield
        self.tell(shard, effects)

    def tell(self, shard: ShardId, effects: flows.FlowEffects) -> None:
        """Lost with this process, it costs a second: the sweep finds what is queued."""
        if effects.firsts:
            self._dispatcher.hinted(shard, effects.firsts)
        self._watchers.notify(effects.moved)
