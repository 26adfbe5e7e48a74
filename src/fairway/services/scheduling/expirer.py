"""Lateness is a fact: measured at every start of a job that had a time, and acted on.

`drop_expired` is asked when leases are about to go out: a job whose last moment has passed is
expired instead, or flagged, as its submitter wished. `Expirer` ends those that wait without a
worker. Jobs that were due at once and have no last moment never come here.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from fairway.core.events.event import NewEvent
from fairway.core.failure.retry import Decision, DecisionReason
from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.core.lifecycle import State
from fairway.core.run.billing import SKIPPED
from fairway.core.scheduling.timing import OnLate, Timing, is_too_late, lateness_ms, may_start
from fairway.runtime.metric_shapes import OTHER_TYPES
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.bad_rows import Aside, each_apart, in_each_shard
from fairway.services.busy_shards import busy_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.dispatch.ports import Sorted
from fairway.services.failure.failure_policy import tally_of
from fairway.services.jobs.flow_news import FlowNews
from fairway.services.jobs.watchers import Watchers
from fairway.services.registry.type_names import TypeNames
from fairway.services.sessions.sessions import End, Lease
from fairway.services.store_clock import StoreClock
from fairway.store import promotion as store
from fairway.store.connections.database import DISCONNECTED, Connection, Database
from fairway.store.connections.error_classes import reason_of
from fairway.store.events.log import add_notices
from fairway.store.flow_locks import FlowsBusy, Wait
from fairway.store.flows import in_flows

log = logger("lateness")

TOO_LATE = b'{"type":"TooLate","message":"Its last moment to start had passed."}'
REST_SECONDS = 1.0
JOBS_PER_ROUND = 500
EVENTS_PER_TENANT = 20  # within one round; the rest are counted in one
NEWS_MAX = 10_000  # kept while the store is away,
NEWS_TENANT_MAX = 100  # and of each tenant


class LateExecution(NamedTuple):
    """A job whose last moment passed before it could start."""

    tenant: TenantId
    job: JobId
    late_ms: int | None  # after its due time; unknown for one that never came to a worker
    action: str  # skipped or flagged


class LatenessCheck:
    def __init__(
        self,
        names: TypeNames,
        store_clock: StoreClock,
        metrics: Metrics,
    ) -> None:
        self._names = names
        self._store_clock = store_clock
        self._metrics = metrics
        self.news: list[LateExecution] = []  # to be written as events

    def drop_expired(self, leases: list[Lease]) -> Sorted:
        """Those that may go out, and how the others end, before any worker hears of them."""
        now_ms = self._store_clock.unix_ms()
        found = Sorted([], [])
        for lease in leases:
            end = self._end_of_late(lease, now_ms)
            if end is None:
                found.in_time.append(lease)
            else:
                found.late.append(end)
        return found

    def _end_of_late(self, lease: Lease, now_ms: int) -> End | None:
        """None: it may go out."""
        if lease.job.timing is None:
            return None
        timing = Timing.of(lease.job.timing)
        late_ms = lateness_ms(timing, now_ms)
        if not may_start(timing, now_ms):
            return self._skip(lease, late_ms)
        name = self._names.by_id.get(lease.job.type, "")
        # Labels are few, and names of tenants' own cost nothing to make up.
        label = name if name in self._names.shared else OTHER_TYPES
        self._metrics.lateness.observe(label, late_ms / 1000)
        if is_too_late(timing, now_ms):
            self.tell(_action(timing), lease.job.tenant, lease.job.id, late_ms)
        return None

    def _skip(self, lease: Lease, late_ms: int) -> End:
        job = lease.job
        decision = Decision(State.EXPIRED, tally_of(job), 0, DecisionReason.TOO_LATE)
        self.tell("skipped", job.tenant, job.id, late_ms)
        return End(lease, None, 0, None, decision, TOO_LATE, outcome_label=SKIPPED)

    def tell(self, action: str, tenant: TenantId, job: JobId, late_ms: int | None) -> None:
        self._metrics.late.labels(action).inc()
        if action != "run":
            self.news.append(LateExecution(tenant, job, late_ms, action))

    def take_news(self) -> list[LateExecution]:
        news, self.news = self.news, []
        return news

    def not_written(self, news: list[LateExecution]) -> None:
        """The store took none of these: they come before what came since."""
        self.news = within_bounds(news + self.news)


def _action(timing: Timing) -> str:
    return "flagged" if timing.on_late == OnLate.FLAG else "run"


class Expirer:
    """Ends waiting jobs whose last moment has passed, so many a round, and writes the events."""

    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        watchers: Watchers,
        lateness: LatenessCheck,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._watchers = watchers
        self._lateness = lateness
        self._aside: Aside[JobId] = Aside()
        self._flow_news = FlowNews(dispatcher, watchers)

    async def run_once(self, now_us: int) -> float:
        shards = self._dispatcher.open_shards()
        late = await busy_shards(self._database, "past_last_moments", shards)
        counts = await in_each_shard(late, self._expire)
        await self._write_news()
        return 0.0 if max(counts, default=0) >= JOBS_PER_ROUND else REST_SECONDS

    async def _expire(self, shard: ShardId) -> int:
        term = self._dispatcher.term_of(shard)
        if term is None:
            return 0
        async with self._database.hot(at=shard) as connection:
            found = await store.passed_last_moments(connection, shard, JOBS_PER_ROUND)
            # A short job that runs may not be written as running; from now on none is granted.
            is_busy = self._dispatcher.is_underway
            now_us = time.monotonic_ns() // 1000
            late = [
                job for job in found if not (is_busy(job.id) or self._aside.holds(job.id, now_us))
            ]
            expired: set[str] = set()

            async def expire(some: Sequence[store.LateJob]) -> None:
                expired.update(await store.expire(connection, shard, term, some, TOO_LATE))

            if late:
                await each_apart(late, expire, self._set_aside)
            # While a tenant is moved its flows are not found here.
            is_moving = self._dispatcher.homes().is_moving
            left = [job for job in late if job.id not in expired and not is_moving(job.key.tenant)]
            if left:
                expired |= await self._expire_members(connection, shard, term, left)
        gone = [job for job in late if job.id in expired]
        self._dispatcher.expired([(job.id, job.key) for job in gone])
        for job in gone:
            self._lateness.tell("skipped", job.key.tenant, job.id, None)
        self._watchers.notify(JobId(job) for job in expired)
        return len(expired)

    async def _expire_members(
        self, connection: Connection, shard: ShardId, term: Term, left: Sequence[store.LateJob]
    ) -> set[str]:
        """Those that are in flows, tenant by tenant. Whose lock is not free comes next round; one
        of them is waited for, shortly: should its lock never be free, its turn comes all the same.
        """
        expired: set[str] = set()
        by_tenant = await _members_by_tenant(connection, shard, left)

        async def expire(wait: Wait, some: Sequence[store.LateJob]) -> None:
            keys = [(job.key.tenant, job.id) for job in some]
            async with self._flow_news.counting(connection, shard, keys, wait):
                done = await store.expire(connection, shard, term, some, TOO_LATE, in_flow=True)
            expired.update(done)

        wait = Wait.SHORT
        for some in by_tenant:
            try:
                await each_apart(some, partial(expire, wait), self._set_aside)
            except FlowsBusy:
                wait = Wait.NOT
        return expired

    def _set_aside(self, job: store.LateJob, error: Exception) -> None:
        self._aside.put(job.id, time.monotonic_ns() // 1000)
        log.error("late job cannot be ended; set aside", job=job.id, error=reason_of(error))

    async def _write_news(self) -> None:
        news = self._lateness.take_news()
        if not news:
            return
        try:
            async with self._database.background() as connection:
                await add_notices(connection, late_events(news))
        except DISCONNECTED:
            self._lateness.not_written(news)
            raise


async def _members_by_tenant(
    connection: Connection, shard: ShardId, left: Sequence[store.LateJob]
) -> list[list[store.LateJob]]:
    """Of these, the ones that are in flows: each tenant's, nobody always last."""
    keys = [(job.key.tenant, job.id) for job in left]
    members = await in_flows(connection, keys, [shard] * len(keys))
    found: dict[TenantId, list[store.LateJob]] = defaultdict(list)
    for job in left:
        if job.id in members:
            found[job.key.tenant].append(job)
    return random.sample(list(found.values()), len(found))


def within_bounds(news: list[LateExecution]) -> list[LateExecution]:
    """One tenant's very many leave room for another's few."""
    counts: Counter[TenantId] = Counter()
    kept = []
    for late in news:
        counts[late.tenant] += 1
        if counts[late.tenant] <= NEWS_TENANT_MAX:
            kept.append(late)
    return kept[:NEWS_MAX]


def late_events(news: list[LateExecution]) -> list[NewEvent]:
    """An event a job; of very many at once, one that counts the rest."""
    by_tenant: dict[TenantId, list[LateExecution]] = defaultdict(list)
    for late in news:
        by_tenant[late.tenant].append(late)
    events = []
    for tenant, found in by_tenant.items():
        events += [_event(late) for late in found[:EVENTS_PER_TENANT]]
        rest = len(found) - EVENTS_PER_TENANT
        if rest > 0:
            detail = f"{rest} more jobs were too late within the same second."
            events.append(NewEvent(tenant, "job.late", "jobs", detail))
    return events


def _event(late: LateExecution) -> NewEvent:
    after = "" if late.late_ms is None else f", {late.late_ms / 1000:g} s after its due time"
    what = "was skipped" if late.action == "skipped" else "ran all the same"
    detail = f"Its last moment to start had passed{after}: it {what}."
    return NewEvent(late.tenant, "job.late", late.job, detail, late.job)
