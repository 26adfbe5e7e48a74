"""Says when a job runs for long without a checkpoint: should its worker die, all of it is lost.

Looks only at pools that expect checkpoints, and tells each run's tenant once.
"""

from __future__ import annotations

from collections import defaultdict

from fairway.core.events.event import NewEvent
from fairway.core.ids import Epoch, JobId, ShardId
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.sessions.sessions import Lease
from fairway.store import checkpoints
from fairway.store.connections.database import Database
from fairway.store.events.log import add_notices

REST_SECONDS = 30.0
EXPECTED_AFTER_SECONDS = 300.0


class CheckpointWatch:
    def __init__(
        self, database: Database, dispatcher: Dispatcher, directory: Directory, metrics: Metrics
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._directory = directory
        self._metrics = metrics
        self.after_seconds = EXPECTED_AFTER_SECONDS
        self._looked_for: set[tuple[JobId, Epoch]] = set()  # job and epoch of runs in force

    async def run_once(self, now_us: int) -> float:
        leases, by_shard = self._dispatcher.all_leases(), defaultdict[ShardId, list[Lease]](list)
        self._looked_for &= {(lease.job.id, lease.epoch) for lease in leases}
        for lease in leases:
            if self._is_due(lease, now_us):
                by_shard[lease.shard].append(lease)
        for shard, due in by_shard.items():
            await self._look(shard, due)
        return REST_SECONDS

    def _is_due(self, lease: Lease, now_us: int) -> bool:
        pool = self._dispatcher.pools.by_number[lease.job.pool]
        ran_seconds = (now_us - lease.granted_us) / 1e6
        expected = pool.checkpoint == "expected" and ran_seconds >= self.after_seconds
        return expected and (lease.job.id, lease.epoch) not in self._looked_for

    async def _look(self, shard: ShardId, leases: list[Lease]) -> None:
        asked = [(lease.job.tenant, lease.job.id) for lease in leases]
        async with self._database.background() as connection:
            have = await checkpoints.jobs_with_checkpoints(connection, shard, asked)
        news = [await self._event(lease) for lease in leases if lease.job.id not in have]
        if news:
            async with self._database.background() as connection:
                await add_notices(connection, news)
            self._metrics.without_checkpoint.inc(len(news))
        self._looked_for.update((lease.job.id, lease.epoch) for lease in leases)

    async def _event(self, lease: Lease) -> NewEvent:
        name = await self._directory.type_name(lease.job.type)
        detail = (
            f"The job {lease.job.id} has run for more than {self.after_seconds / 60:.0f} minutes"
            " without a checkpoint: if its worker dies, it begins at the beginning. Call"
            " ctx.checkpoint(state) now and then."
        )
        return NewEvent(lease.job.tenant, "checkpoint.missing", name, detail, lease.job.id)
