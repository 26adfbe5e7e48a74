"""What people and programs ask about jobs: one, a page, or "tell me when it changes".

The owner knows more than the store for a moment: a short job that runs may not be written as
running yet. Answers join both, so nobody sees a job stand still that in truth runs.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from fairway.core.errors import NotFound
from fairway.core.ids import JobId, shard_for_tenant, shard_of
from fairway.core.job import JobFilter, JobRecord
from fairway.core.lifecycle import State
from fairway.core.unix_time import to_unix_ms
from fairway.runtime.clock import Clock
from fairway.runtime.loops import wait
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.job_reader import JobReader
from fairway.services.jobs.watch import Watchers
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store import history
from fairway.store.checkpoints import Saved
from fairway.store.connections.database import Database
from fairway.store.connections.query_slots import SlowUse
from fairway.store.history import is_cut as is_cut

FAR_POLL_SECONDS = 0.25


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
        watchers: Watchers,
        store_clock: StoreClock,
        *,
        clock: Clock,
        shard_count: int,
    ) -> None:
        self._database = database
        self._reader = JobReader(database, lambda number: dispatcher.pools.by_number[number])
        self._dispatcher = dispatcher
        self._watchers = watchers
        self._store_clock = store_clock
        self._clock = clock
        self._shard_count = shard_count

    async def job(self, tenant: int, job: JobId) -> JobSight:
        found = await self._reader.read(tenant, job)
        if found is None:
            raise NotFound(f"There is no job {job}.")
        return self._with_lease(found.record)._replace(checkpoint=found.checkpoint)

    def _with_lease(self, record: JobRecord) -> JobSight:
        lease = self._dispatcher.lease_on(record.id)
        if lease is None or record.state not in (State.QUEUED, State.RUNNING):
            return JobSight(record)
        if record.state == State.QUEUED:
            started = self._store_clock.at_us(lease.granted_us)
            record = record._replace(
                state=State.RUNNING.value, epoch=lease.epoch, started_at=started
            )
        return JobSight(record, lease.progress)

    async def job_when(
        self, tenant: int, job: JobId, *, wait_seconds: float, unlike: str | None = None
    ) -> JobSight:
        """The job once it is final, or differs from `unlike`, or the wait is over."""
        with self._watchers.watch(tenant, job) as changed:
            deadline_us = self._clock.now_us() + round(wait_seconds * 1e6)
            while True:
                changed.clear()
                sight = await self.job(tenant, job)
                left_seconds = (deadline_us - self._clock.now_us()) / 1e6
                if _is_answer(sight, unlike) or left_seconds <= 0 or self._watchers.is_closed:
                    return sight
                await wait(changed, left_seconds)

    async def jobs(self, tenant: int, wanted: JobFilter) -> list[JobSight]:
        shard = shard_for_tenant(tenant, self._shard_count)
        async with told_if_away, self._asked(tenant, wanted) as connection:
            records = await history.list_jobs(connection, shard, tenant, wanted)
        return [self._with_lease(record) for record in records]

    def _asked(self, tenant: int, wanted: JobFilter) -> SlowUse:
        """A page as they lie is quick; one of few that match may lie behind very many others."""
        is_filtered = not (wanted.states is None and wanted.type is None and wanted.pool is None)
        return self._database.slow(tenant) if is_filtered else self._database.quick(tenant)

    async def slot_time(self, tenant: int, since: str, before: str) -> list[history.SlotTime]:
        """What the tenant's jobs of some time used, by pool."""
        shard = shard_for_tenant(tenant, self._shard_count)
        async with told_if_away, self._database.slow(tenant) as connection:
            return await history.slot_time(connection, shard, tenant, since, before)

    async def run_once(self, now_us: int) -> float:
        """Ask the store about jobs that are watched here and owned elsewhere; a loop calls this."""
        far = [
            (tenant, job)
            for tenant, job in self._watchers.watched()
            if not self._dispatcher.is_open(shard_of(job))
        ]
        self._watchers.notify(job for _, job in far)
        return FAR_POLL_SECONDS if far else 4 * FAR_POLL_SECONDS


def _is_answer(sight: JobSight, unlike: str | None) -> bool:
    if State(sight.record.state).is_final:
        return True
    return unlike is not None and sight.version != unlike and not _is_behind(sight, unlike)


def _is_behind(sight: JobSight, version: str) -> bool:
    """Whether this is older than the version: a run has ended, and its end is not on disk yet.

    Until it is, the store shows the job as it was before the run, or as running without progress.
    """
    state, epoch, *_, mark = version.split(".") if version.count(".") == 5 else ("", "", "")
    record = sight.record
    if epoch.isdecimal() and len(epoch) < 20 and record.epoch < int(epoch):
        return True
    is_same_run = (state, epoch) == (str(int(record.state)), str(record.epoch))
    return is_same_run and state == _RUNNING and sight.progress is None and mark != "0"


_RUNNING = str(int(State.RUNNING))
