"""What people and programs ask about jobs: one, or a page.

The owner knows more than the store for a moment: a short job that runs may not be written as
running yet, and progress is in its memory alone. Answers join both, so nobody sees a job stand
still that in truth runs; a server that is not the owner asks it (`far_runs.py`).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from fairway.core.errors import NotFound
from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.job import JobFilter, JobRecord
from fairway.core.lifecycle import State
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.unix_time import from_unix_us, to_unix_ms, to_unix_us
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.far_runs import FarRun, FarRuns
from fairway.services.jobs.job_reader import JobReader
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store import history
from fairway.store.checkpoints import Saved
from fairway.store.connections.database import Database
from fairway.store.connections.query_slots import SlowUse
from fairway.store.history import is_cut as is_cut


class JobSight(NamedTuple):
    """A job as it stands, with what only its owner knows."""

    record: JobRecord
    progress: bytes | None = None
    checkpoint: Saved | None = None

    @property
    def version(self) -> str:
        """Changes whenever anything a tenant can see changes."""
        r = self.record
        mark = zlib.crc32(self.progress) if self.progress else 0
        if r.state == State.SCHEDULED and r.execute_at is not None:
            mark = to_unix_ms(r.execute_at)  # it can be moved to another time
        elif r.state == State.DEAD:
            mark = int(r.fingerprint is not None)  # it can be discarded
        saved = self.checkpoint
        kept = f"{saved.epoch:x}-{saved.number:x}" if saved else "0"
        return f"{r.state}.{r.epoch}.{r.attempts}.{r.deliveries}.{kept}.{mark:x}"


class JobLookup:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        far_runs: FarRuns,
        store_clock: StoreClock,
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._far_runs = far_runs
        self._reader = JobReader(
            database, lambda number: dispatcher.pools.by_number[number], tenant_shards
        )
        self._dispatcher = dispatcher
        self._store_clock = store_clock
        self._tenant_shards = tenant_shards

    async def job(self, tenant: TenantId, job: JobId) -> JobSight:
        home = self._tenant_shards.of(tenant)
        found = await self._reader.read(tenant, job)
        if found is None:
            self._tenant_shards.still_takes(tenant, home)  # who waited while it moved asks again
            raise NotFound(f"There is no job {job}.")
        record = found.record
        run = await self._run(tenant, record)
        return _joined(record, run)._replace(checkpoint=found.checkpoint)

    def shard_of(self, tenant: TenantId) -> ShardId:
        """Where its jobs are."""
        return self._tenant_shards.of(tenant)

    async def _run(self, tenant: TenantId, record: JobRecord) -> FarRun | None:
        shard = self._dispatcher.homes().of_job(tenant, record.id)
        if self._is_far(shard, record):
            return await self._far_runs.of(shard, record.id)
        return self.run_of(record.id)

    def _is_far(self, shard: ShardId, record: JobRecord) -> bool:
        """Whether it may run, and another server knows how."""
        return record.state in _MAY_RUN and not self._dispatcher.owns(shard)

    def run_of(self, job: JobId) -> FarRun | None:
        """A run of a job that this server owns, as other servers hear of it."""
        lease = self._dispatcher.lease_on(job)
        if lease is None:
            return None
        started = self._store_clock.at_us(lease.granted_us)
        return FarRun(lease.epoch, to_unix_us(started), lease.progress)

    async def jobs(self, tenant: TenantId, wanted: JobFilter) -> list[JobSight]:
        shard = self._tenant_shards.of(tenant)
        async with told_if_away, self._asked(tenant, wanted) as connection:
            records = await history.list_jobs(connection, shard, tenant, wanted)
        return await self.with_runs(tenant, records)

    async def with_runs(self, tenant: TenantId, records: Sequence[JobRecord]) -> list[JobSight]:
        """With what their owners know beyond the store."""
        shard = self._tenant_shards.of(tenant)
        running = [one.id for one in records if self._is_far(shard, one)]
        far = await self._far_runs.of_each(shard, running)
        return [_joined(one, far.get(one.id) or self.run_of(one.id)) for one in records]

    def _asked(self, tenant: TenantId, wanted: JobFilter) -> SlowUse:
        """A page as they lie is quick; one of few that match may lie behind very many others."""
        narrowing = (wanted.states, wanted.type, wanted.pool, wanted.tag)
        is_filtered = any(one is not None for one in narrowing)
        return self._database.slow(tenant) if is_filtered else self._database.quick(tenant)


_MAY_RUN = (State.QUEUED, State.RUNNING)


def _joined(record: JobRecord, run: FarRun | None) -> JobSight:
    if run is None or record.state not in _MAY_RUN or run.epoch < record.epoch:
        return JobSight(record)
    if record.state == State.QUEUED:
        started = from_unix_us(run.started_us)
        record = record._replace(state=State.RUNNING.value, epoch=run.epoch, started_at=started)
    return JobSight(record, run.progress)
