"""Answers why a job waits: gathers what the owner knows and lets `core/explain.py` judge it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fairway.core.backlog.streams import StreamKey, key_of
from fairway.core.explain import AHEAD_MAX, Facts, Start, note_of, reason_of, start_of
from fairway.core.fair_share.history import Recent
from fairway.core.fair_share.standings import ShareStanding
from fairway.core.ids import JobId, TenantId
from fairway.core.lifecycle import State
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.dispatch.fair_share_loop import FairShareLoop
from fairway.services.jobs.lookup import JobLookup, JobSight
from fairway.services.object_storage.checkpoints import Checkpoints
from fairway.services.store_clock import StoreClock
from fairway.services.transient_errors import told_if_away
from fairway.store import backlog as store
from fairway.store.connections.database import Database


class Explanation(NamedTuple):
    sight: JobSight
    reason: str
    jobs_ahead: int | None  # None: not in line
    start: Start | None
    standing: ShareStanding
    run_us: int
    recent: Recent | None
    note: str = ""


class Explainer:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        job_lookup: JobLookup,
        shares: FairShareLoop,
        checkpoints: Checkpoints,
        store_clock: StoreClock,
        result_waits: Callable[[JobId], str | None],
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._wait_facts = dispatcher.wait_facts()
        self._job_lookup = job_lookup
        self._shares = shares
        self._checkpoints = checkpoints
        self._store_clock = store_clock
        self._result_waits = result_waits  # why a job's result is not stored yet

    async def explain(self, tenant: TenantId, job: JobId, now_us: int) -> Explanation:
        sight = await self._job_lookup.job(tenant, job)
        record = sight.record
        key = StreamKey(tenant, record.pool, record.type, record.priority, record.lane)
        ahead = await self._ahead(key, job) if record.state == State.QUEUED else None
        share = self._dispatcher.share_of(record.pool)
        standing = share.standing(tenant, now_us)
        run_us = share.estimate(record.type).mean_us
        hold = self._dispatcher.holds().on(key)
        facts = Facts(
            state=State(record.state),
            due_in_us=self._due_in_us(sight),
            hold=hold.reason if hold else None,
            has_worker=self._wait_facts.is_run(record.type, record.pool, tenant),
            has_slots=self._wait_facts.has_slots(record.type, record.pool, tenant),
            lacking=self._wait_facts.lacking_labels(record.type, record.pool, tenant),
            storage_failure=self._storage_failure(sight),
            result_waits=self._result_waits(job),
            full=self._wait_facts.full_limit(tenant, record.limits) if record.limits else None,
            waiting=standing.waiting,
            jobs_ahead=ahead or 0,
            fair_slots_milli=standing.fair_slots_milli,
            debt_us=standing.debt_us,
            run_us=run_us,
            free_slots=self._wait_facts.free_slots(record.type, record.pool, tenant),
        )
        totals = share.totals([tenant], now_us)
        recent = self._shares.history[record.pool].recent(totals[0]) if totals else None
        return Explanation(
            sight,
            reason_of(facts),
            ahead,
            start_of(facts),
            standing,
            run_us,
            recent,
            note_of(facts),
        )

    def _storage_failure(self, sight: JobSight) -> str | None:
        """Why the job cannot go on from where it was, if it was anywhere."""
        return None if sight.checkpoint is None else self._checkpoints.failure

    async def _ahead(self, key: StreamKey, job: JobId) -> int:
        async with told_if_away, self._database.quick(key.tenant) as connection:
            shard = self._dispatcher.homes().of_job(key.tenant, job)
            ahead = await store.jobs_ahead(connection, shard, key, job, AHEAD_MAX)
        return ahead if ahead >= AHEAD_MAX else max(ahead - self._started(key, job), 0)

    def _started(self, key: StreamKey, job: JobId) -> int:
        """Those ahead that run, though the store shows them as queued for a moment yet."""
        return sum(
            lease.job.id < job and key_of(lease.job) == key
            for lease in self._wait_facts.unwritten()
        )

    def _due_in_us(self, sight: JobSight) -> int | None:
        due = sight.record.execute_at
        if due is None:
            return None
        return round((due - self._store_clock.now()).total_seconds() * 1e6)
