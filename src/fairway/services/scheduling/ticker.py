"""Fires the ticks of recurring schedules, for the shards this server owns.

Which ticks are due is worked out first, in parts and with nothing held. Then one short transaction:
the term is held, due schedules are held, each tick is claimed, its job is written, and how far the
schedule has come. So a crash leaves all of it or nothing, and two owners can never fire one tick
twice. A schedule that changed in between is left to the next round. The jobs are scheduled ones:
the promoter takes them from there, under its caps. The database's clock decides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from fairway.core.errors import Refused
from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.core.job import events_of
from fairway.core.lifecycle import State
from fairway.core.scheduling.schedule import RunCause, RunOutcome, Schedule, ScheduleKey
from fairway.core.scheduling.ticks import CatchUp, Due, Overlap, due_ticks, plan, while_affordable
from fairway.core.unix_time import from_unix_ms, to_unix_ms
from fairway.runtime.loops import WorkInParts
from fairway.runtime.random_ids import JobIdFactory
from fairway.runtime.telemetry import Instruments, logger
from fairway.services.bad_rows import Aside, each_apart, in_each_shard
from fairway.services.busy_shards import due_shards
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.jobs.control import Control
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.scheduling.schedule_jobs import (
    Firing,
    firing,
    next_tick,
    recurrence,
)
from fairway.services.sent_traces import Begin, SentTraces
from fairway.store import history, submissions
from fairway.store import schedules as store
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.error_classes import reason_of
from fairway.store.schedules import Run, Settled

log = logger("ticker")

SCHEDULES_PER_ROUND = 200
ROUND_BYTES = 8 << 20  # of jobs that one transaction writes; a schedule's own come whole
JOB_BYTES = 1 << 10  # of a job beside its payload
REST_MAX_SECONDS = 1.0
REST_WAITING_SECONDS = 0.25  # a tick waits for the run before it: look whether it is over
CANCELS_AT_ONCE = 8
CANCEL_TRIES = 20
BEFORE_ALL = (TenantId(-1), "")
BROKEN_AGAIN = timedelta(minutes=1)
SUSPENDED_AGAIN = timedelta(seconds=30)


class Reckoning(NamedTuple):
    """What is due of a schedule at a moment, and what comes next; None: it cannot be worked out."""

    schedule: Schedule
    now: datetime
    due: Due | None
    next_at: datetime | None

    @property
    def due_bytes(self) -> int:
        """What its jobs weigh that are due, whether or not all of them fire."""
        ticks = len(self.due.ticks) if self.due is not None else 0
        return ticks * (len(self.schedule.spec.payload) + JOB_BYTES)

    def fits(self, schedule: Schedule) -> bool:
        mine = self.schedule
        return (mine.spec, mine.handled_at, mine.next_at) == (
            schedule.spec,
            schedule.handled_at,
            schedule.next_at,
        )


class Outcome(NamedTuple):
    """What one schedule does in this round."""

    settled: Settled
    firings: list[Firing]
    others: list[Run]  # skipped, or waiting
    missed: int = 0
    cancel: JobId | None = None


class TickerPorts(NamedTuple):
    directory: Directory
    on_scheduled: Callable[[], None]
    on_cancel: Callable[[], None]  # there is a run to be stopped
    is_full: Callable[[], bool]  # no more jobs: ticks wait, and are late as after an outage


class Ticker:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        control: Control,
        ids: JobIdFactory,
        instruments: Instruments,
        ports: TickerPorts,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._control = control
        self._ids = ids
        self._metrics = instruments.metrics
        self._traces = SentTraces(instruments.spans, ports.directory)
        self._waiting_after: dict[ShardId, tuple[TenantId, str]] = {}
        self._cancels: dict[tuple[TenantId, JobId], int] = {}  # runs to stop → tries left
        self._aside: Aside[ScheduleKey] = Aside()
        self._ports = ports

    async def run_once(self, now_us: int) -> float:
        soon = await due_shards(self._database, "ticking", self._dispatcher.open_shards())
        rests = await in_each_shard(soon.due, self._round)
        if soon.seconds is not None:
            rests.append(soon.seconds)
        return min([REST_MAX_SECONDS, *rests])  # a shard may come meanwhile

    async def _round(self, shard: ShardId) -> float:
        term = self._dispatcher.term_of(shard)
        if term is None or self._ports.is_full():
            return REST_MAX_SECONDS
        reckoned = await self._reckon(shard, term)
        rests: list[float] = []

        async def tick(some: Sequence[ScheduleKey]) -> None:
            only = None if len(some) == len(reckoned) else set(some)
            rests.append(await self._tick(shard, term, reckoned, only))

        await each_apart(list(reckoned), tick, self._set_aside)
        return min(rests, default=REST_MAX_SECONDS)

    def _set_aside(self, key: ScheduleKey, error: Exception) -> None:
        self._aside.put(key, time.monotonic_ns() // 1000)
        self._metrics.rows_set_aside.labels("schedules").inc()
        log.error("schedule cannot tick; set aside", schedule=key, error=reason_of(error))

    async def _tick(
        self,
        shard: ShardId,
        term: Term,
        reckoned: dict[ScheduleKey, Reckoning],
        only: set[ScheduleKey] | None,
    ) -> float:
        """One transaction for all that were reckoned, or for those only."""
        outcomes: list[Outcome] = []
        async with (
            self._database.hot(at=shard) as connection,
            self._traces.sending() as begin,
            connection.transaction(),
        ):
            now = await store.hold_shard(connection, shard, term)
            if now is None:
                return REST_MAX_SECONDS
            found, is_waiting = await self._found(connection, shard)
            if only is not None:
                found = [schedule for schedule in found if schedule.key in only]
            known = [one for one in map(partial(_reckoning, reckoned, now), found) if one]
            if known:
                outcomes = await self._settle(connection, shard, known, begin)
            seconds = await store.seconds_to_next(connection, shard)
        self._after(outcomes)
        rest = REST_MAX_SECONDS if seconds is None else max(seconds, 0.0)
        return min(rest, REST_WAITING_SECONDS if is_waiting else REST_MAX_SECONDS)

    async def _reckon(self, shard: ShardId, term: Term) -> dict[ScheduleKey, Reckoning]:
        """What is due, with no row held: some expressions take a while."""
        async with self._database.hot(at=shard) as connection:
            now = await store.hold_shard(connection, shard, term)
            if now is None:
                return {}
            due = await store.due_schedules(connection, shard, SCHEDULES_PER_ROUND)
        work, found, room_bytes = WorkInParts(), {}, ROUND_BYTES
        now_us = time.monotonic_ns() // 1000
        for schedule in due:
            if self._aside.holds(schedule.key, now_us):
                continue
            found[schedule.key] = reckoned = _reckoned(schedule, now)
            # After an outage each may have many to make up for: the rest has rounds of its own.
            room_bytes -= reckoned.due_bytes
            if room_bytes <= 0:
                break
            await work.let_others()
        return found

    async def _found(self, connection: Connection, shard: ShardId) -> tuple[list[Schedule], bool]:
        """Schedules to look at; and whether some wait for a run to end."""
        due = await store.due_schedules(connection, shard, SCHEDULES_PER_ROUND)
        after = self._waiting_after.get(shard, BEFORE_ALL)
        waiting = await store.waiting_schedules(connection, shard, after, SCHEDULES_PER_ROUND)
        self._waiting_after.pop(shard, None)
        if len(waiting) == SCHEDULES_PER_ROUND:
            self._waiting_after[shard] = (waiting[-1].key.tenant, waiting[-1].key.name)
        waiting = [one for one in waiting if not self._is_suspended(one)]
        found = {schedule.key: schedule for schedule in (*waiting, *due)}
        return list(found.values()), bool(waiting) or after != BEFORE_ALL

    async def _settle(
        self, connection: Connection, shard: ShardId, found: list[Reckoning], begin: Begin
    ) -> list[Outcome]:
        lasts = [(one.schedule.key.tenant, one.schedule.last_job) for one in found]
        jobs = [(tenant, job) for tenant, job in lasts if job is not None]
        states = await history.read_states(connection, shard, jobs) if jobs else {}
        live = {job for job, (state, _) in states.items() if not State(state).is_final}
        outcomes = [self._outcome(one, one.schedule.last_job in live) for one in found]
        runs = [one.run for outcome in outcomes for one in outcome.firings]
        runs += [run for outcome in outcomes for run in outcome.others]
        claimed = await store.claim_runs(connection, shard, runs) if runs else set()
        written = [f.job for one in outcomes for f in one.firings if f.job.id in claimed]
        if written:
            later = {job.id for job in written}
            marks = events_of(written, self._ports.directory.with_job_events)
            await submissions.insert_jobs(connection, shard, begin(written), later, marks)
        await store.settle_schedules(connection, shard, [one.settled for one in outcomes])
        return outcomes

    def _is_suspended(self, schedule: Schedule) -> bool:
        return self._dispatcher.holds().is_suspended(schedule.key.tenant)

    def _outcome(self, found: Reckoning, is_live: bool) -> Outcome:
        if self._is_suspended(found.schedule):
            return _put_off(found.schedule, found.now)
        if found.due is None:
            return _broken(found.schedule, found.now)
        try:
            return self._judged(found, found.due, is_live)
        except Exception as error:  # one that cannot be read any more must not stop the others
            log.error("schedule cannot tick", schedule=found.schedule.key, error=repr(error))
            return _broken(found.schedule, found.now)

    def _judged(self, found: Reckoning, due: Due, is_live: bool) -> Outcome:
        schedule = found.schedule
        key, spec = schedule.key, schedule.spec
        waits = None if schedule.waiting_tick is None else to_unix_ms(schedule.waiting_tick)
        made = plan(due.ticks, Overlap(spec.overlap), is_live=is_live, waiting=waits)
        ids = self._ids.make(key.shard, len(made.fire))
        firings = [
            firing(schedule, job, tick, RunCause.CLOCK)
            for job, tick in zip(ids, made.fire, strict=True)
        ]
        others = [_run(schedule, tick, RunOutcome.SKIPPED) for tick in made.skip]
        if made.waiting is not None and made.waiting != waits:
            others.append(_run(schedule, made.waiting, RunOutcome.WAITING))
        settled = Settled(
            key.tenant,
            key.name,
            max(found.now, schedule.handled_at),
            found.next_at,
            None if made.waiting is None else from_unix_ms(made.waiting),
            ids[-1] if ids else None,
        )
        cancel = schedule.last_job if made.cancel else None
        return Outcome(settled, firings, others, due.missed, cancel)

    def _after(self, outcomes: list[Outcome]) -> None:
        """The transaction stands: tell the promoter, ask for running ones to be stopped, count."""
        for outcome in outcomes:
            self._metrics.ticks.labels("fired").inc(len(outcome.firings))
            self._metrics.ticks.labels("missed").inc(outcome.missed)
            self._metrics.ticks.labels("skipped").inc(
                sum(run.outcome == RunOutcome.SKIPPED for run in outcome.others)
            )
            if outcome.cancel is not None:
                self._cancels[outcome.settled.tenant, outcome.cancel] = CANCEL_TRIES
                self._ports.on_cancel()
        if any(outcome.firings for outcome in outcomes):
            self._ports.on_scheduled()

    async def cancel_runs(self, now_us: int) -> float:
        """A loop of its own: a run that cannot be stopped now stops nobody's schedules."""
        some = list(self._cancels)[:CANCELS_AT_ONCE]
        tries = [self._cancels.pop(run) for run in some]
        done = await asyncio.gather(*(self._is_cancelled(*run) for run in some))
        for run, left, is_done in zip(some, tries, done, strict=True):
            if not is_done and left > 1:
                self._cancels.setdefault(run, left - 1)
        return REST_MAX_SECONDS if all(done) and not self._cancels else REST_WAITING_SECONDS

    async def _is_cancelled(self, tenant: TenantId, job: JobId) -> bool:
        try:
            await self._control.cancel(tenant, job)
        except Refused as error:
            log.info("a run was over before it could be stopped", job=job, error=error.message)
        except Exception as error:
            log.warning("a run is not stopped yet", job=job, error=repr(error))
            return False
        return True


def _reckoning(
    reckoned: dict[ScheduleKey, Reckoning], now: datetime, schedule: Schedule
) -> Reckoning | None:
    """What is known of a schedule that is held now; None: it changed, or came due since."""
    if schedule.next_at is None or schedule.next_at > now:  # only a tick of it waits
        return Reckoning(schedule, schedule.handled_at, Due((), 0), schedule.next_at)
    found = reckoned.get(schedule.key)
    if found is None or not found.fits(schedule):
        return None
    return found._replace(schedule=schedule)


def _reckoned(schedule: Schedule, now: datetime) -> Reckoning:
    try:
        following = next_tick(schedule.spec, to_unix_ms(now))
        return Reckoning(schedule, now, _due(schedule, now), following)
    except Exception as error:  # one that cannot be read any more must not stop the others
        log.error("schedule cannot tick", schedule=schedule.key, error=repr(error))
        return Reckoning(schedule, now, None, None)


def _due(schedule: Schedule, now: datetime) -> Due:
    spec = schedule.spec
    last = now if spec.ends_at is None else min(now, spec.ends_at)
    ticks = while_affordable(recurrence(spec).until(to_unix_ms(last)))
    handled_ms = max(to_unix_ms(schedule.handled_at), to_unix_ms(spec.starts_at) - 1)
    return due_ticks(ticks, handled_ms, to_unix_ms(now), CatchUp(spec.catch_up), spec.window_ms)


def _broken(schedule: Schedule, now: datetime) -> Outcome:
    key, again = schedule.key, now + BROKEN_AGAIN
    settled = Settled(key.tenant, key.name, schedule.handled_at, again, None, None)
    return Outcome(settled, [], [])


def _put_off(schedule: Schedule, now: datetime) -> Outcome:
    """Of a suspended tenant: looked at again in a while, so that it stands in nobody's way.

    No tick is settled; when the tenant is back, its schedule catches up as after an outage.
    """
    key, again, waiting = schedule.key, now + SUSPENDED_AGAIN, schedule.waiting_tick
    settled = Settled(key.tenant, key.name, schedule.handled_at, again, waiting, None)
    return Outcome(settled, [], [])


def _run(schedule: Schedule, tick_ms: int, outcome: RunOutcome) -> Run:
    key = schedule.key
    return Run(key.tenant, key.name, from_unix_ms(tick_ms), RunCause.CLOCK, outcome, None)
