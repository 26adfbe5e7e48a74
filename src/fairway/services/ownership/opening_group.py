"""What must hold before shards open, read once for all that come at about the same time.

A server that leaves frees dozens of shards at once. If each read tenants, caps and debts for
itself, the last would open half a second after the first. Who comes while a read is under way
shares the next one: that one may have looked too soon. A shard whose part cannot be read holds up
no other: after a read that failed each is tried by itself. Opens nothing: that is `takeover.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

from fairway.core.ids import ShardId


class OpeningGroup:
    def __init__(self, read: Callable[[Collection[ShardId]], Awaitable[None]]) -> None:
        self._read = read
        self._waiting: dict[ShardId, asyncio.Future[None]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def ready(self, shard: ShardId) -> None:
        """Returns once a read that began after this call has brought what the shard needs."""
        waiter = self._waiting.get(shard)
        if waiter is None or waiter.done():
            waiter = self._waiting[shard] = asyncio.get_running_loop().create_future()
        if self._reading is None:
            self._reading = asyncio.create_task(self._run(), name="before open")
        await waiter

    async def _run(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting, {}
                await self._serve(group)
        finally:
            self._reading = None

    async def _serve(self, group: dict[ShardId, asyncio.Future[None]]) -> None:
        error = await self._failure(group)
        for shard, waiter in group.items():
            own = await self._failure((shard,)) if error and len(group) > 1 else error
            if waiter.done():  # given up meanwhile
                continue
            if own is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(own)

    async def _failure(self, shards: Collection[ShardId]) -> Exception | None:
        try:
            await self._read(shards)
        except Exception as error:  # told to whoever waits, who tries again
            return error
        return None
