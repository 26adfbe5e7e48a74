"""Rolls the log of ended runs up into hours, a bounded part at a time.

A part is one statement, so it is done or not done; two servers that try take turns. It needs no
term: whoever rolls a row up takes it away (decision 0051).
"""

from __future__ import annotations

from fairway.core.ids import ShardId
from fairway.runtime.clock import Clock
from fairway.services.bad_rows import in_each_shard
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.store.billing import usage
from fairway.store.connections.database import Database

REST_SECONDS = 2.0
BUSY_SECONDS = 0.1
ROWS_AT_ONCE = 200  # batches of runs
ROUND_US = 1_000_000  # at one shard; then others have their turn


class RollUp:
    def __init__(self, database: Database, dispatcher: Dispatcher, clock: Clock) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._clock = clock
        self._begun: set[ShardId] = set()  # their books are open

    async def run_once(self, now_us: int) -> float:
        shards = self._dispatcher.open_shards()
        new = [shard for shard in shards if shard not in self._begun]
        if new:
            async with self._database.background() as connection:
                await usage.begin_billing(connection, new)
            self._begun.update(new)
        done = await in_each_shard(shards, self.drain)
        return REST_SECONDS if all(done) else BUSY_SECONDS

    async def drain(self, shard: ShardId) -> bool:
        """Until nothing is left, for so long at most; whether nothing was."""
        until_us = self._clock.now_us() + ROUND_US
        while self._clock.now_us() < until_us:
            async with self._database.background() as connection:
                if await usage.roll_up(connection, shard, ROWS_AT_ONCE) < ROWS_AT_ONCE:
                    return True
        return False
