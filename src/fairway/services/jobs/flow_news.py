"""Jobs that end, or come back: those in flows are counted, and who waited for them is told of it.

Only what is in a flow takes its tenant's lock: all else is written first, without.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from fairway.core.ids import JobId, ShardId
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.watchers import Watchers
from fairway.store import flows
from fairway.store.connections.database import Connection
from fairway.store.flow_locks import Wait
from fairway.store.flows import Key


class Change(Protocol):
    """Ends these jobs, or brings them back; answers which. Members of flows only as such."""

    async def __call__(self, ids: Sequence[JobId], *, in_flow: bool) -> set[str]: ...


class FlowNews:
    def __init__(self, dispatcher: Dispatcher, watchers: Watchers) -> None:
        self._dispatcher = dispatcher
        self._watchers = watchers

    async def change(
        self,
        connection: Connection,
        shard: ShardId,
        keys: Sequence[Key],
        act: Change,
        wait: Wait = Wait.USUAL,
    ) -> set[str]:
        """What is in no flow at once; then what was left out, of one tenant, counted."""
        done = await act([job for _, job in keys], in_flow=False)
        left = [key for key in keys if key[1] not in done]
        shards = [shard] * len(left)
        members = await flows.in_flows(connection, left, shards) if left else set()
        if members:
            left = [key for key in left if key[1] in members]
            async with self.counting(connection, shard, left, wait):
                done = done | await act([job for _, job in left], in_flow=True)
        return done

    @asynccontextmanager
    async def counting(
        self, connection: Connection, shard: ShardId, keys: Sequence[Key], wait: Wait = Wait.USUAL
    ) -> AsyncIterator[None]:
        """As `flows.counting`; told when it is on disk."""
        async with flows.counting(connection, shard, keys, wait) as effects:
            yield
        self.tell(shard, effects)

    def tell(self, shard: ShardId, effects: flows.FlowEffects) -> None:
        """Lost with this process, it costs a second: the sweep finds what is queued."""
        if effects.firsts:
            self._dispatcher.hinted(shard, effects.firsts)
        self._watchers.notify(effects.moved)
