"""Keeps windows full: reads the next jobs of streams that run low, many streams in a query."""

from __future__ import annotations

from collections import defaultdict

from fairway.core.streams import Stream
from fairway.runtime.loops import pause
from fairway.services.dispatcher import Dispatcher
from fairway.store import backlog as store
from fairway.store.database import Database

STREAMS_PER_READ = 24
REST_SECONDS = 0.006  # between reads while many streams want one: the moment's work goes first
CROWD_SECONDS = 0.25  # between reads of those outside a crowded pool: nobody waits there for ever
IDLE_SECONDS = 1.0


class Refiller:
    def __init__(self, database: Database, dispatcher: Dispatcher) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._crowd_at_us = 0

    async def run_once(self, now_us: int) -> float:
        backlog = self._dispatcher.backlog
        if backlog.reading.is_waited_for and not backlog.wants_reads:
            if now_us < self._crowd_at_us:
                return (self._crowd_at_us - now_us) / 1e6
            self._crowd_at_us = now_us + round(CROWD_SECONDS * 1e6)
        reads = backlog.begin_reads(STREAMS_PER_READ)
        if not reads:
            return IDLE_SECONDS
        by_shard: dict[int, list[tuple[Stream, int]]] = defaultdict(list)
        for stream, limit in reads:
            by_shard[stream.shard].append((stream, limit))
        try:
            for shard in list(by_shard):
                await self._read(shard, by_shard[shard])
                del by_shard[shard]
        finally:  # what was begun and not read is asked for again
            for stream, _ in (wish for group in by_shard.values() for wish in group):
                self._dispatcher.backlog.fail_read(stream)
        if len(reads) == STREAMS_PER_READ:
            await pause(REST_SECONDS)
        return 0.0

    async def _read(self, shard: int, group: list[tuple[Stream, int]]) -> None:
        backlog = self._dispatcher.backlog
        wishes = [store.StreamRead(stream.key, stream.cursor, limit) for stream, limit in group]
        async with self._database.hot() as connection:
            found = await store.read_streams(connection, shard, wishes)
        held = self._dispatcher.leases
        filled = [
            stream.key
            for (stream, limit), jobs in zip(group, found, strict=True)
            if backlog.end_read(stream, jobs, limit, held)
        ]
        self._dispatcher.refilled(filled)
