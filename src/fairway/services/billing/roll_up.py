"""Rolls the log of ended runs up into hours, a bounded part at a time.

A part is one statement, so it is done or not done; two servers that try take turns. It needs no
term: whoever rolls a row up takes it away (decision 0051). A row that the store will not book is
found out and set aside: it stays in the log with the reason, holds up neither others nor the
month's end, and is tried again by the shard's next owner. So many of them at most; more stop it.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.core.ids import FIRST_SHARD, ShardId
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.bad_rows import each_apart, in_each_shard
from fairway.services.busy_shards import busy_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.store.billing import usage
from fairway.store.connections.database import Database
from fairway.store.connections.error_classes import has_answered, is_about_rows, reason_of
from fairway.store.registry import tenant_moves

log = logger("billing")

# Whoever asks what was used is told of the log as well, so nobody waits for this; and the longer it
# rests, the more runs of one tenant become one write to its hour.
REST_SECONDS = 10.0
BUSY_SECONDS = 0.1
LINES_AT_ONCE = 50_000  # ends of runs
LINES_MIN = 100  # of each shard, however many they are
ROWS_AT_ONCE = 200  # that are looked at one by one
ROUND_US = 1_000_000  # at one shard; then others have their turn
ASIDE_MAX = 1_000  # rows of a shard
ROWS_LOGGED = 10


class RollUp:
    def __init__(
        self, database: Database, dispatcher: Dispatcher, clock: Clock, metrics: Metrics
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._clock = clock
        self._metrics = metrics
        self._begun: set[ShardId] = set()  # their books are open

    async def kept_here(self) -> list[ShardId]:
        """The shards whose books this server keeps: its own; and, with the first shard, the one
        that a tenant moves to: ends of other shards are logged there, and nobody owns it yet."""
        shards = self._dispatcher.open_shards()
        if FIRST_SHARD not in shards or self._database.placement is not None:
            return shards
        async with self._database.background() as connection:
            return sorted({*shards, *await tenant_moves.shards_moved_to(connection)})

    async def run_once(self, now_us: int) -> float:
        shards = await self.kept_here()
        new = [shard for shard in shards if shard not in self._begun]
        if new:
            async with self._database.background() as connection:
                await usage.begin_billing(connection, new)
                for some in self._database.batches_of(new):
                    await usage.try_again(connection, some)
            self._begun.update(new)
        busy = await busy_shards(self._database, "with_usage", shards)
        done = [await self._drain_all(some) for some in self._database.batches_of(busy)]
        return REST_SECONDS if all(done) else BUSY_SECONDS

    async def _drain_all(self, shards: Sequence[ShardId]) -> bool:
        """As `drain`, of several shards by one statement; one with a bad row goes by itself."""
        if len(shards) == 1:
            return await self.drain(shards[0])
        until_us = self._clock.now_us() + ROUND_US
        each = max(LINES_AT_ONCE // len(shards), LINES_MIN)
        try:
            while self._clock.now_us() < until_us:
                async with self._database.background() as connection:
                    if await usage.roll_up(connection, shards, each) < each:
                        return True
            return False
        except Exception as error:
            if not (has_answered(error) and is_about_rows(error)):
                raise
        return all(await in_each_shard(shards, self.drain))

    async def drain(self, shard: ShardId) -> bool:
        """Until nothing is left, for so long at most; whether nothing was."""
        until_us = self._clock.now_us() + ROUND_US
        while self._clock.now_us() < until_us:
            if await self._part(shard):
                return True
        return False

    async def _part(self, shard: ShardId) -> bool:
        """Answers whether nothing is left."""
        try:
            return await self._book(shard) < LINES_AT_ONCE
        except Exception as error:
            if not (has_answered(error) and is_about_rows(error)):
                raise
        async with self._database.background() as connection:
            ids = await usage.next_to_book(connection, shard, ROWS_AT_ONCE)
        refused: dict[int, Exception] = {}

        async def book(some: Sequence[int]) -> None:
            await self._book(shard, some)

        await each_apart(ids, book, refused.__setitem__)
        if refused:
            await self._set_aside(shard, refused)
        return len(ids) < ROWS_AT_ONCE

    async def _book(self, shard: ShardId, ids: Sequence[int] | None = None) -> int:
        async with self._database.background() as connection:
            return await usage.roll_up(connection, [shard], LINES_AT_ONCE, ids)

    async def _set_aside(self, shard: ShardId, refused: dict[int, Exception]) -> None:
        reasons = {row: reason_of(error) for row, error in refused.items()}
        async with self._database.background() as connection:
            if not await usage.set_aside(connection, shard, reasons, ASIDE_MAX):
                raise next(iter(refused.values()))  # so many that somebody has to look
        self._metrics.rows_set_aside.labels("usage").inc(len(reasons))
        log.error(
            "usage cannot be booked; set aside",
            shard=shard,
            count=len(reasons),
            rows=list(reasons)[:ROWS_LOGGED],
            error=next(iter(reasons.values())),
        )
