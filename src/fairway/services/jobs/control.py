"""What people ask of jobs: cancel, or another time. Only the owner of a job changes it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from fairway.core.backlog.streams import StreamKey
from fairway.core.errors import Conflict, Unavailable
from fairway.core.flows import NEVER
from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.core.lifecycle import State
from fairway.core.scheduling.timing import Wish, timing_of
from fairway.core.tenant import tenant_moving
from fairway.core.unix_time import from_unix_ms
from fairway.runtime.loops import in_slices, pause
from fairway.runtime.telemetry import logger
from fairway.services.backpressure.connection_turns import HotTurns
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.flow_news import FlowNews
from fairway.services.jobs.lookup import JobLookup, JobSight
from fairway.services.jobs.unheard_cancels import UnheardCancels, UnheardPage
from fairway.services.jobs.watchers import Watchers
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store import history, outcomes, promotion, unique_jobs
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.error_classes import has_answered
from fairway.store.flow_locks import Wait

log = logger("control")

END_LOOK_SECONDS = 0.02
CANCEL_SECONDS_MAX = 2.0  # then it is asked for again: an end on its way takes milliseconds


class Cancelled(NamedTuple):
    """What became of a page of jobs that were to be cancelled."""

    cancelled: int  # waited; final now
    asked: int  # run; they end as cancelled, or as they would have


class Ending(NamedTuple):
    """A page under way to its end: what waited, and which of that is cancelled."""

    waiting: Sequence[history.LiveJob]
    done: set[str]
    asked: int


class Control:
    def __init__(
        self,
        database: Database,
        turns: HotTurns,
        dispatcher: Dispatcher,
        job_lookup: JobLookup,
        watchers: Watchers,
        store_clock: StoreClock,
        on_scheduled: Callable[[], None],
        on_unheard: Callable[[], None],
    ) -> None:
        self._store_clock = store_clock
        self._on_scheduled = on_scheduled
        self._database = database
        self._turns = turns
        self._dispatcher = dispatcher
        self._job_lookup = job_lookup
        self._watchers = watchers
        self._flow_news = FlowNews(dispatcher, watchers)
        self.unheard = UnheardCancels(dispatcher, on_unheard)

    async def cancel(self, tenant: TenantId, job: JobId) -> JobSight:
        """Waiting jobs are cancelled at once; a running one is asked to stop."""
        sight = await self._job_lookup.job(tenant, job)
        if State(sight.record.state).is_final:
            raise Conflict(f"The job has ended already: it is {State(sight.record.state).label}.")
        deadline_us = self._store_clock.now_us() + round(CANCEL_SECONDS_MAX * 1e6)
        while not (
            self._dispatcher.cancel(tenant, job) or await self._cancel_waiting(tenant, job, sight)
        ):
            # Its run has ended and that is on its way to disk: then it waits again, or is final.
            if self._store_clock.now_us() >= deadline_us:
                raise Unavailable("The job runs, and its worker is not known yet. Try again.")
            await pause(END_LOOK_SECONDS)
            sight = await self._job_lookup.job(tenant, job)
            if State(sight.record.state).is_final:
                return sight
        return await self._job_lookup.job(tenant, job)

    async def reschedule(self, tenant: TenantId, job: JobId, wish: Wish) -> JobSight:
        """Another time for a job that is still scheduled: a first run, or a retry."""
        sight = await self._job_lookup.job(tenant, job)
        if sight.record.state == State.SCHEDULED and await self._move(tenant, job, wish):
            self._on_scheduled()
            self._watchers.notify([job])
            return await self._job_lookup.job(tenant, job)
        record = (await self._job_lookup.job(tenant, job)).record
        if record.state == State.SCHEDULED and record.execute_at == NEVER:
            raise Conflict("The job waits for other jobs of its flow, not for a time.")
        label = State(record.state).label
        raise Conflict(f"Only a scheduled job can be moved to another time; it is {label}.")

    async def _move(self, tenant: TenantId, job: JobId, wish: Wish) -> bool:
        shard = self._dispatcher.homes().of_job(tenant, job)
        timing = timing_of(wish, self._store_clock.unix_ms(), random.random())
        execute_at = from_unix_ms(timing.due_ms)
        async with told_if_away, self._turns.change(tenant) as connection:
            self._refuse_moving(tenant)
            return await promotion.reschedule(
                connection, shard, self._term(shard), tenant, job, execute_at
            )

    def _refuse_moving(self, tenant: TenantId) -> None:
        """Once there is a connection. Of a tenant that moves a job may be here and its flow gone:
        nobody would count that it ended, and who waits for it would wait for ever. Its keys are
        refused before; an operator who acts for it is not."""
        if self._dispatcher.homes().is_moving(tenant):
            raise tenant_moving()

    def _term(self, shard: ShardId) -> Term:
        term = self._dispatcher.restored_term_of(shard)
        if term is None:
            raise Unavailable(code="NOT_OWNER")
        return term

    async def _cancel_waiting(self, tenant: TenantId, job: JobId, sight: JobSight) -> bool:
        shard, record = self._dispatcher.homes().of_job(tenant, job), sight.record
        term = self._term(shard)
        key = StreamKey(tenant, record.pool, record.type, record.priority, record.lane)
        page = [history.LiveJob(job, key)]
        async with told_if_away, self._turns.change(tenant) as connection:
            self._refuse_moving(tenant)

            async def cancel(ids: Sequence[JobId], *, in_flow: bool) -> set[str]:
                done = await outcomes.cancel_waiting(
                    connection, shard, term, tenant, job, in_flow=in_flow
                )
                return {*ids} if done else set()

            with self.unheard.watching(shard, tenant, page):
                done = await self._flow_news.change(connection, shard, [(tenant, job)], cancel)
        if done:
            self._forget([(job, key)])
        return bool(done)

    def _forget(self, jobs: Sequence[tuple[JobId, StreamKey]]) -> None:
        """Waiting jobs are cancelled on disk: they must not start here any more."""
        self._dispatcher.cancelled(jobs)
        self._watchers.notify([job for job, _ in jobs])

    # -- many --------------------------------------------------------------------------------

    async def cancel_these(
        self, tenant: TenantId, shard: ShardId, page: Sequence[history.LiveJob]
    ) -> Cancelled:
        """A page at once, for somebody who waits for it."""
        async with told_if_away, self._turns.page(tenant) as connection:
            self._refuse_moving(tenant)
            with self.unheard.watching(shard, tenant, page):
                ending = await self.cancel_within(connection, shard, tenant, page)
        return await self.settle(tenant, ending)

    async def cancel_within(
        self,
        connection: Connection,
        shard: ShardId,
        tenant: TenantId,
        page: Sequence[history.LiveJob],
        wait: Wait = Wait.USUAL,
    ) -> Ending:
        """As part of whatever else the connection writes; `settle` what came of it, once it is on
        disk."""
        asked = sum(self._dispatcher.cancel(tenant, job.id) for job in page)
        waiting = [job for job in page if self._dispatcher.lease_on(job.id) is None]
        keys = [(tenant, job.id) for job in waiting]
        cancel = partial(outcomes.cancel_many, connection, shard, self._term(shard), tenant)
        done = await self._flow_news.change(connection, shard, keys, cancel, wait)
        return Ending(waiting, done, asked)

    async def settle(self, tenant: TenantId, ending: Ending) -> Cancelled:
        """What is cancelled must not start any more; what started meanwhile is asked to stop."""
        waiting, done, asked = ending
        async for gone in in_slices([(job.id, job.key) for job in waiting if job.id in done]):
            self._forget(gone)  # one that is granted meanwhile is revoked when its turn comes
        for job in waiting:
            if job.id not in done:  # granted, or ended, at the same moment
                asked += self._dispatcher.cancel(tenant, job.id)
        return Cancelled(len(done), asked)

    async def make_sure(self) -> None:
        """Nobody heard whether these are cancelled: those that are must not start any more."""
        for page in self.unheard.pages():
            try:
                await self._make_sure(page)
            except Exception as error:
                if not has_answered(error):
                    raise  # the store is away
                log.warning("left for later", tenant=page.tenant, error=repr(error))

    async def _make_sure(self, page: UnheardPage) -> None:
        asked = [(page.tenant, job.id) for job in page.jobs]
        async with self._database.background() as connection:
            # Whoever still writes holds the rows: what is read after that stands.
            await unique_jobs.lock_waiting(connection, page.shard, asked)
            states = await history.read_states(connection, page.shard, asked)
        done = {job for job, (state, _) in states.items() if state == State.CANCELLED}
        waiting = {JobId(job) for job, (state, _) in states.items() if state == State.QUEUED}
        await self.settle(page.tenant, Ending(page.jobs, done, 0))
        self.unheard.known(page, waiting)
