"""Moves jobs whose time has come to the backlog, so many a round; the database's clock decides."""

from __future__ import annotations

from fairway.runtime.telemetry import Metrics
from fairway.services.dispatcher import Dispatcher
from fairway.store import backlog as store
from fairway.store.database import Database

JOBS_PER_ROUND = 1000
REST_MAX_SECONDS = 1.0
REST_MIN_SECONDS = 0.01


class Promoter:
    def __init__(self, database: Database, dispatcher: Dispatcher, metrics: Metrics) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._metrics = metrics

    async def run_once(self, now_us: int) -> float:
        rests = [await self._promote(shard) for shard in list(self._dispatcher.open_shards)]
        return min(rests, default=REST_MAX_SECONDS)

    async def _promote(self, shard: int) -> float:
        term = self._dispatcher.terms.get(shard)
        if term is None:
            return REST_MAX_SECONDS
        async with self._database.hot() as connection:
            jobs = await store.promote_due(connection, shard, term, JOBS_PER_ROUND)
            if len(jobs) < JOBS_PER_ROUND:
                due_seconds = await store.seconds_to_next_due(connection, shard)
            else:
                due_seconds = 0.0
        if jobs:
            self._metrics.promoted.inc(len(jobs))
            self._dispatcher.arrived(shard, jobs)
        rest = REST_MAX_SECONDS if due_seconds is None else due_seconds
        return min(max(rest, REST_MIN_SECONDS), REST_MAX_SECONDS)
