"""Keeps time partitions ahead and retention behind. Only the owner of shard 0 does it."""

from __future__ import annotations

from datetime import timedelta

from fairway.runtime.telemetry import logger
from fairway.services.dispatcher import Dispatcher
from fairway.services.store_clock import StoreClock
from fairway.store import dead_letter_actions as actions
from fairway.store import events, partitions, schedules, submissions
from fairway.store.database import Database

log = logger("pruner")

REST_SECONDS = 60.0
ROWS_PER_ROUND = 5000


class Pruner:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        store_clock: StoreClock,
        retention_days: int,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._store_clock = store_clock
        self._retention = timedelta(days=retention_days)

    async def run_once(self, now_us: int) -> float:
        if 0 not in self._dispatcher.open_shards:
            return REST_SECONDS
        now = self._store_clock.now()
        keep_since = now - self._retention
        async with self._database.calm() as connection:
            for name in await partitions.make_ahead(connection, now):
                log.info("partition made", partition=name)
            for partition in await partitions.existing(connection):
                if partition.ends < keep_since:
                    carried = await partitions.retire(connection, partition, keep_since)
                    log.info("partition dropped", partition=partition.name, carried=carried)
            swept = await partitions.sweep_carried(connection, keep_since, ROWS_PER_ROUND)
            swept += await events.forget_events(connection, keep_since, ROWS_PER_ROUND)
            for shard in list(self._dispatcher.open_shards):
                swept += await submissions.forget_keys(connection, shard, ROWS_PER_ROUND)
                swept += await actions.forget(connection, shard, keep_since, ROWS_PER_ROUND)
                swept += await schedules.forget_runs(connection, shard, keep_since, ROWS_PER_ROUND)
        return 1.0 if swept >= ROWS_PER_ROUND else REST_SECONDS
