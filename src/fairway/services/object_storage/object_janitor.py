"""Removes what object storage holds and nothing needs any more.

Checkpoints of jobs that ended well go within a minute, and half-written objects within hours. What
a crash left behind, written and never referred to, goes when its day is past retention and its job
is gone; uploads go after two days. Each round is bounded. While an old partition is on its way out,
it cannot be told whose job is gone: then nothing of a job goes.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from fairway.core.errors import Unavailable
from fairway.core.ids import FIRST_SHARD, ShardId, TenantId, parse_job_id
from fairway.core.object_storage.object_names import day_of, owner_of
from fairway.runtime.telemetry import logger
from fairway.services.busy_shards import busy_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.object_storage.upload_accounts import KEPT_DAYS
from fairway.services.store_clock import StoreClock
from fairway.store import checkpoints, history
from fairway.store.connections.database import Connection, Database
from fairway.store.object_storage.storage import Objects
from fairway.store.schema import partition_retirement

log = logger("janitor")

REST_SECONDS = 60.0
ROWS_PER_ROUND = 500
OBJECTS_AT_ONCE = 500
PART_AGE_MAX = timedelta(hours=2)  # since anybody wrote to it; an upload takes an hour at most


class Janitor:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        objects: Objects,
        store_clock: StoreClock,
        retention_days: int,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._objects = objects
        self._store_clock = store_clock
        self._retention = timedelta(days=retention_days + 1)
        self._swept_day = ""

    async def run_once(self, now_us: int) -> float:
        try:
            await self._objects.sweep_parts(self._store_clock.now() - PART_AGE_MAX)
            dropped = await self._drop_finished()
            # While a tenant is moved, that a job is not found does not say that it is gone.
            if self._dispatcher.is_open(FIRST_SHARD) and not self._dispatcher.homes().any_moving:
                await self._sweep_old_days()
        except Unavailable as error:
            log.warning("object storage away, nothing removed", error=error.message)
            return REST_SECONDS
        return 1.0 if dropped >= ROWS_PER_ROUND else REST_SECONDS

    async def _drop_finished(self) -> int:
        """The rows go first: an object without a row is litter, a row without one is a lie."""
        most = 0
        shards = self._dispatcher.open_shards()
        for shard in await busy_shards(self._database, "with_checkpoints", shards):
            async with self._database.background() as connection:
                names = await checkpoints.drop_finished_checkpoints(
                    connection, shard, ROWS_PER_ROUND
                )
            await self._objects.delete(names)
            most = max(most, len(names))
        return most

    async def _sweep_old_days(self) -> None:
        """Once a day: objects from before retention whose job is gone."""
        edge = self._store_clock.now() - self._retention
        if day_of(edge) == self._swept_day:
            return
        done = [
            await self._sweep_kind(kind, day_of(edge))
            for kind in ("checkpoints", "payloads", "results")
        ]
        # Of uploads, today's and yesterday's are kept, as they are counted.
        now = self._store_clock.now()
        await self._sweep_kind("uploads", day_of(now - timedelta(days=KEPT_DAYS - 1)))
        if all(done):
            self._swept_day = day_of(edge)

    async def _sweep_kind(self, kind: str, first_day: str) -> bool:
        """False when it must be tried again."""
        for day in await self._objects.folders(kind):
            if day < first_day:
                if not await self._sweep(await self._objects.names(f"{kind}/{day}")):
                    return False
                await self._objects.drop_empty(f"{kind}/{day}")
        return True

    async def _sweep(self, names: list[str]) -> bool:
        for start in range(0, len(names), OBJECTS_AT_ONCE):
            if self._dispatcher.homes().any_moving:
                return False
            part = names[start : start + OBJECTS_AT_ONCE]
            async with self._database.background() as connection:
                litter = await _litter(connection, part, self._dispatcher.homes().of_job)
            if litter is None:
                log.info("a partition is on its way out, litter stays until then")
                return False
            await self._objects.delete(litter)
            if litter:
                log.info("litter removed", objects=len(litter))
        return True


async def _litter(
    connection: Connection, names: list[str], shard_of: Callable[[TenantId, str], ShardId]
) -> list[str] | None:
    """Those whose job is gone, or that no job took over; None when that cannot be told now."""
    jobs: dict[str, str] = {}
    wanted: dict[ShardId, list[tuple[TenantId, str]]] = {}
    for name in names:
        tenant, owner = owner_of(name)
        if (job := parse_job_id(owner)) is not None:
            jobs[name] = job
            wanted.setdefault(shard_of(tenant, job), []).append((tenant, job))
    found: set[str] = set()
    if wanted:
        async with connection.transaction():
            if not await partition_retirement.is_settled(connection):
                return None
            for shard, some in wanted.items():
                found.update(await history.read_states(connection, shard, some))
    return [name for name in names if jobs.get(name) not in found]
