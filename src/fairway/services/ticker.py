"""Fires the ticks of recurring schedules, for the shards this server owns.

One short transaction a round: the term is held, due schedules are held, each tick is claimed, its
job is written, and how far the schedule has come. So a crash leaves all of it or nothing, and two
owners can never fire one tick twice. The jobs are scheduled ones: the promoter takes them from
there, under its caps. The database's clock decides.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.errors import Refused
from fairway.core.ids import JobId
from fairway.core.lifecycle import State
from fairway.core.schedule import Cause, RunOutcome, Schedule
from fairway.core.ticks import CatchUp, Due, Overlap, due_ticks, plan
from fairway.runtime.identity import JobIdFactory
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.control import Control
from fairway.services.dispatcher import Dispatcher
from fairway.services.schedule_jobs import Firing, firing, moment_of, next_tick, recurrence, unix_ms
from fairway.store import history, submissions
from fairway.store import schedules as store
from fairway.store.database import Connection, Database
from fairway.store.schedules import Run, Settled

log = logger("ticker")

SCHEDULES_PER_ROUND = 200
REST_MAX_SECONDS = 1.0
REST_WAITING_SECONDS = 0.25  # a tick waits for the run before it: look whether it is over
BROKEN_AGAIN = timedelta(minutes=1)


class Outcome(NamedTuple):
    """What one schedule does in this round."""

    settled: Settled
    firings: list[Firing]
    others: list[Run]  # skipped, or waiting
    missed: int = 0
    cancel: JobId | None = None


class Ticker:
    def __init__(
        self,
        database: Database,
        dispatcher: Dispatcher,
        control: Control,
        ids: JobIdFactory,
        metrics: Metrics,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._control = control
        self._ids = ids
        self._metrics = metrics
        self._waiting_after: dict[int, tuple[int, str]] = {}
        self.on_scheduled: Callable[[], None] = lambda: None

    async def run_once(self, now_us: int) -> float:
        rests = [await self._round(shard) for shard in list(self._dispatcher.open_shards)]
        return min(rests, default=REST_MAX_SECONDS)

    async def _round(self, shard: int) -> float:
        term = self._dispatcher.terms.get(shard)
        if term is None:
            return REST_MAX_SECONDS
        outcomes: list[Outcome] = []
        async with self._database.hot() as connection, connection.transaction():
            now = await store.hold_shard(connection, shard, term)
            if now is None:
                return REST_MAX_SECONDS
            found, is_waiting = await self._found(connection, shard)
            if found:
                outcomes = await self._settle(connection, shard, found, now)
            seconds = await store.seconds_to_next(connection, shard)
        await self._after(outcomes)
        rest = REST_MAX_SECONDS if seconds is None else max(seconds, 0.0)
        return min(rest, REST_WAITING_SECONDS if is_waiting else REST_MAX_SECONDS)

    async def _found(self, connection: Connection, shard: int) -> tuple[list[Schedule], bool]:
        """Schedules to look at; and whether some wait for a run to end."""
        due = await store.due_schedules(connection, shard, SCHEDULES_PER_ROUND)
        after = self._waiting_after.get(shard, (-1, ""))
        waiting = await store.waiting_schedules(connection, shard, after, SCHEDULES_PER_ROUND)
        self._waiting_after.pop(shard, None)
        if len(waiting) == SCHEDULES_PER_ROUND:
            self._waiting_after[shard] = (waiting[-1].place.tenant, waiting[-1].place.name)
        found = {schedule.place: schedule for schedule in (*waiting, *due)}
        return list(found.values()), bool(waiting) or after != (-1, "")

    async def _settle(
        self, connection: Connection, shard: int, found: list[Schedule], now: datetime
    ) -> list[Outcome]:
        jobs = [(one.place.tenant, one.last_job) for one in found if one.last_job is not None]
        states = await history.read_states(connection, shard, jobs) if jobs else {}
        live = {job for job, (state, _) in states.items() if not State(state).is_final}
        outcomes = [self._outcome(schedule, now, live) for schedule in found]
        runs = [one.run for outcome in outcomes for one in outcome.firings]
        runs += [run for outcome in outcomes for run in outcome.others]
        claimed = await store.claim_runs(connection, shard, runs) if runs else set()
        written = [f.job for one in outcomes for f in one.firings if f.job.id in claimed]
        if written:
            await submissions.insert_jobs(connection, shard, written, {job.id for job in written})
        await store.settle_schedules(connection, shard, [one.settled for one in outcomes])
        return outcomes

    def _outcome(self, schedule: Schedule, now: datetime, live: set[str]) -> Outcome:
        try:
            return self._judged(schedule, now, schedule.last_job in live)
        except Exception as error:  # one that cannot be read any more must not stop the others
            log.error("schedule cannot tick", schedule=schedule.place, error=repr(error))
            place, again = schedule.place, now + BROKEN_AGAIN
            return Outcome(
                Settled(place.tenant, place.name, schedule.handled_at, again, None, None), [], []
            )

    def _judged(self, schedule: Schedule, now: datetime, is_live: bool) -> Outcome:
        place, terms = schedule.place, schedule.terms
        due = _due(schedule, now)
        waits = None if schedule.waiting_tick is None else unix_ms(schedule.waiting_tick)
        made = plan(due.ticks, Overlap(terms.overlap), is_live=is_live, waiting=waits)
        ids = self._ids.make(place.shard, len(made.fire))
        firings = [
            firing(schedule, job, tick, Cause.CLOCK)
            for job, tick in zip(ids, made.fire, strict=True)
        ]
        others = [_run(schedule, tick, RunOutcome.SKIPPED) for tick in made.skip]
        if made.waiting is not None and made.waiting != waits:
            others.append(_run(schedule, made.waiting, RunOutcome.WAITING))
        settled = Settled(
            place.tenant,
            place.name,
            max(now, schedule.handled_at),
            next_tick(terms, unix_ms(now)),
            None if made.waiting is None else moment_of(made.waiting),
            ids[-1] if ids else None,
        )
        cancel = schedule.last_job if made.cancel else None
        return Outcome(settled, firings, others, due.missed, cancel)

    async def _after(self, outcomes: list[Outcome]) -> None:
        """The transaction stands: tell the promoter, ask running ones to stop, count."""
        for outcome in outcomes:
            self._metrics.ticks.labels("fired").inc(len(outcome.firings))
            self._metrics.ticks.labels("missed").inc(outcome.missed)
            self._metrics.ticks.labels("skipped").inc(
                sum(run.outcome == RunOutcome.SKIPPED for run in outcome.others)
            )
            if outcome.cancel is not None:
                await self._cancel(outcome.settled.tenant, outcome.cancel)
        if any(outcome.firings for outcome in outcomes):
            self.on_scheduled()

    async def _cancel(self, tenant: int, job: JobId) -> None:
        try:
            await self._control.cancel(tenant, job)
        except Refused as error:
            log.info("a run was over before it could be stopped", job=job, error=error.message)


def _due(schedule: Schedule, now: datetime) -> Due:
    terms = schedule.terms
    if schedule.next_at is None or schedule.next_at > now:
        return Due((), 0)  # only looked at because a tick of it waits
    last = now if terms.ends_at is None else min(now, terms.ends_at)
    ticks = recurrence(terms).until(unix_ms(last))
    handled_ms = max(unix_ms(schedule.handled_at), unix_ms(terms.starts_at) - 1)
    return due_ticks(ticks, handled_ms, unix_ms(now), CatchUp(terms.catch_up), terms.window_ms)


def _run(schedule: Schedule, tick_ms: int, outcome: RunOutcome) -> Run:
    place = schedule.place
    return Run(place.tenant, place.name, moment_of(tick_ms), Cause.CLOCK, outcome, None)
