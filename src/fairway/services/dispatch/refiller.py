"""Keeps windows full: reads the next jobs of streams that run low, many streams in a query.

Small jobs are read by count. A stream whose jobs are heavy is read by bytes, so that one answer,
and all windows together, stay within their bounds whatever a job weighs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from fairway.core.backlog.reading import Budget
from fairway.core.backlog.streams import Stream, StreamKey
from fairway.core.ids import ShardId
from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.services.bad_rows import Aside, each_apart
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.dispatch.node_reads import NodeReads
from fairway.store import backlog as store
from fairway.store.connections.database import DISCONNECTED, OWNER_SECONDS, Database
from fairway.store.connections.error_classes import reason_of
from fairway.store.connections.placement import Placement

log = logger("refiller")

Wish: TypeAlias = tuple[Stream, int]  # a stream, and how many of its jobs
Streams: TypeAlias = dict[StreamKey, Stream]

STREAMS_PER_READ = 24
REST_SECONDS = 0.006  # between reads while many streams want one: the moment's work goes first
CROWD_SECONDS = 0.25  # between reads of those outside a crowded pool: nobody waits there for ever
IDLE_SECONDS = 1.0
SILENT_SECONDS = 0.02  # until streams on a node that does not answer are looked at again
READ_SECONDS = 20.0  # at one node of several


class Refiller:
    def __init__(self, database: Database, dispatcher: Dispatcher) -> None:
        self._database = database
        self._windows = dispatcher.windows()
        self._crowd_at_us = 0
        self._aside: Aside[StreamKey] = Aside()
        self._nodes = NodeReads()

    async def run_once(self, now_us: int) -> float:
        self._windows.review()
        rest_seconds = await self._refill(now_us)
        if self._windows.is_reviewing():
            await pause(REST_SECONDS)
            return 0.0
        return min(rest_seconds, self._windows.limits_rest_seconds())

    async def _refill(self, now_us: int) -> float:
        windows = self._windows
        if windows.is_only_crowd():
            if now_us < self._crowd_at_us:
                return (self._crowd_at_us - now_us) / 1e6
            self._crowd_at_us = now_us + round(CROWD_SECONDS * 1e6)
        begun = windows.begin_reads(STREAMS_PER_READ)
        reads = []
        for wish in begun:
            if self._aside.holds(wish[0].key, now_us) or self._waits(wish[0].shard):
                windows.fail_read(wish[0])
            else:
                reads.append(wish)
        if not reads:
            return SILENT_SECONDS if begun else IDLE_SECONDS
        budget = windows.budget_of(reads)
        if self._database.placement is None:
            await self._read_all(reads, budget, now_us)
        else:
            await self._read_nodes(reads, self._database.placement, budget, now_us)
        if len(begun) == STREAMS_PER_READ:
            await pause(REST_SECONDS)
        return 0.0

    def _waits(self, shard: ShardId) -> bool:
        """Whether its node, of several, does not answer, or has not answered the last read yet."""
        placement = self._database.placement
        if placement is None:
            return False
        return placement.is_silent(shard) or self._nodes.is_busy(placement.node_of(shard))

    async def _read_nodes(
        self, reads: Sequence[Wish], placement: Placement, budget: Budget, now_us: int
    ) -> None:
        """The streams of one node are not to wait for another, nor longer with each failure."""
        of_node: dict[int, list[Wish]] = defaultdict(list)
        for wish in reads:
            of_node[placement.node_of(wish[0].shard)].append(wish)
        failed = await self._nodes.run(
            {
                node: partial(self._read_all, wishes, budget, now_us)
                for node, wishes in of_node.items()
            }
        )
        if failed:
            await pause(SILENT_SECONDS)

    async def _read_all(self, reads: Sequence[Wish], budget: Budget, now_us: int) -> None:
        """A store that is away is raised when all had their turn."""
        left: dict[tuple[int | None, bool], list[Wish]] = defaultdict(list)
        for wish in reads:
            left[self._database.together(wish[0].shard), wish[0].heavy].append(wish)
        undone = {stream.key: stream for stream, _ in reads}
        read = partial(self._read, budget, undone)
        away: Exception | None = None
        try:
            for group in left.values():
                try:
                    await each_apart(group, read, partial(self._set_aside, undone, now_us))
                except DISCONNECTED as error:
                    away = error
        finally:  # what was begun and not read is asked for again
            for stream in undone.values():
                self._windows.fail_read(stream)
        if away is not None:
            raise away

    def _set_aside(self, undone: Streams, now_us: int, wish: Wish, error: Exception) -> None:
        """A job of this stream cannot be read: those of the same stream wait, and nobody else."""
        stream = wish[0]
        self._aside.put(stream.key, now_us)
        del undone[stream.key]
        self._windows.fail_read(stream)
        log.error("stream cannot be read; set aside", key=str(stream.key), error=reason_of(error))

    async def _read(self, budget: Budget, undone: Streams, group: Sequence[Wish]) -> None:
        wishes = [
            store.StreamRead(stream.shard, stream.key, stream.cursor, limit)
            for stream, limit in group
        ]
        seconds = OWNER_SECONDS if self._database.placement is None else READ_SECONDS
        async with self._database.hot(seconds, group[0][0].shard) as connection:
            if group[0][0].heavy:
                found = await store.read_streams_by_bytes(connection, wishes, budget.each_bytes)
            else:
                found = await store.read_streams(connection, wishes, budget.light_bytes)
        filled = self._windows.end_reads(group, found, budget)
        for stream, _ in group:
            del undone[stream.key]
        self._windows.refilled(filled)
