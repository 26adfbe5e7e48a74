"""A front door in memory: takes jobs, and runs them when told, by the code that production uses.

The codec, the time limit, the vocabulary and the decision after each run are the real ones. There
are no tenants, no fair share and no leases here: what must be seen with those needs a server.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Collection
from operator import itemgetter
from typing import Any

import msgspec

from fairway.core.errors import Conflict, FairwayError, InvalidRequest, NotFound
from fairway.core.failure.retry import NOTHING_YET, Decision, RetryPolicy, decide
from fairway.core.ids import FIRST_SHARD, make_job_id
from fairway.core.lifecycle import LIVE, State
from fairway.core.run.outcome import Outcome, OutcomeKind
from fairway.sdk.client.backend import Submission
from fairway.sdk.client.failures import StillRunning
from fairway.sdk.handler.context import Ctx
from fairway.sdk.handler.follow_ups import Gathered
from fairway.sdk.handler.pauses import MIDDLE_SAMPLE
from fairway.sdk.hooks import JobDeath, RunFailure
from fairway.sdk.http.sse import Event
from fairway.sdk.job import Job
from fairway.sdk.run import run_job
from fairway.sdk.testing.clock import Clock
from fairway.sdk.testing.flows import FlowBook, MemoryFlowDoor
from fairway.sdk.testing.record import Enqueued
from fairway.sdk.testing.schedules import TestedSchedule
from fairway.sdk.testing.uniqueness import UniqueNames
from fairway.wire.messages import JobRequest, JobView, Reschedule
from fairway.wire.run_logs import LogLine
from fairway.wire.schedules import ScheduleRequest

RUNS_MAX = 100  # of one job; beyond it, it surely snoozes for ever


class MemoryDoor:
    """One testing mode. `inline` runs each job as it comes; otherwise they wait for `drain`."""

    def __init__(self, *, inline: bool) -> None:
        self.inline = inline
        self.clock = Clock(on_turn=self._fire)
        self.enqueued: list[Enqueued] = []
        self._schedules: dict[str, TestedSchedule] = {}
        self._by_key: dict[str, Enqueued] = {}
        self._unique = UniqueNames()
        self._book = FlowBook()
        self._free: list[Enqueued] = []  # inline: those whose waiting is over, and that did not run
        self.flows = MemoryFlowDoor(self, self._book)

    async def submit(self, submission: Submission) -> str:
        known = self._by_key.get(submission.idempotency_key or "")
        if known is not None:
            return _same(known, submission).id
        there = self._unique.holder(submission.request.unique, self.clock.unix_seconds)
        if there is not None:
            return there.id
        record = self.accept(submission)
        await self.run_inline(record)
        return record.id

    async def run_inline(self, *records: Enqueued) -> None:
        """Inline: these one by one to their ends, then whatever waited for them."""
        line = deque(records)
        while self.inline and (line or self._free):
            line += self._free
            self._free = []
            if line[0].may_run:
                await self._go(line[0])
            else:
                line.popleft()

    async def submit_many(self, submissions: list[Submission]) -> list[str | FairwayError]:
        return [await self._verdict(submission) for submission in submissions]

    async def _verdict(self, submission: Submission) -> str | FairwayError:
        try:
            return await self.submit(submission)
        except Conflict as error:
            return error

    async def view(self, job_id: str, wait_seconds: float = 0) -> JobView:
        record = self.find(job_id)
        if wait_seconds and record.state in LIVE:
            if record.is_held:
                raise StillRunning(f"{record.type} waits for other jobs, and those have not ended")
            raise StillRunning(f"{record.type} waits: nothing runs in manual mode before drain()")
        return record.view()

    async def result(self, job_id: str) -> bytes:
        result = self.find(job_id).view().result
        return b"null" if result is None else bytes(result)

    async def cancel(self, job_id: str, *, children: bool = False) -> JobView:
        record = self.find(job_id)
        if record.state in LIVE:
            record.move(State.CANCELLED)
            self._moved(record)
            await self.run_inline()
        if children:
            for child in self._children(job_id):
                await self.cancel(child.id, children=True)
        return record.view()

    async def children(self, job_id: str) -> list[JobView]:
        return [one.view() for one in reversed(self._children(self.find(job_id).id))]

    def _children(self, job_id: str) -> list[Enqueued]:
        return [one for one in self.enqueued if one.parent == job_id]

    async def reschedule(self, job_id: str, wanted: Reschedule) -> JobView:
        record = self.find(job_id)
        if record.state is not State.SCHEDULED:
            raise Conflict(f"only a scheduled job can be moved; it is {record.state.label}")
        if record.is_held:
            raise Conflict("it waits for other jobs, and for no time that could be moved")
        record.due_at = due_of(wanted, self.clock.unix_seconds)
        return record.view()

    async def replay(self, job_id: str) -> JobView:
        record = self.find(job_id)
        if record.state is not State.DEAD:
            raise NotFound(f"{record.type} {job_id} is no dead letter: it is {record.state.label}")
        record.tally, record.due_at = NOTHING_YET, self.clock.unix_seconds
        record.move(State.QUEUED)
        self._moved(record)
        await self.run_inline(record)
        return record.view()

    async def events(self, job_id: str) -> AsyncIterator[Event]:
        for event in tuple(self.find(job_id).events):
            yield event

    async def logs(
        self, job_id: str, attempt: int | None = None, *, follow: bool = False
    ) -> AsyncIterator[LogLine]:
        for line in tuple(self.find(job_id).lines):
            if attempt in (None, line.attempt):
                yield line

    async def drain(self, *, with_scheduled: bool = False) -> Counter[str]:
        """Run what is due until nothing is; with scheduled jobs, turn the clock to reach them."""
        counts: Counter[str] = Counter()
        while waiting := [record for record in self.enqueued if record.may_run]:
            record = min(waiting, key=self._turn)
            if record.due_at > self.clock.unix_seconds and not with_scheduled:
                break
            counts[await self._go(record)] += 1
        return counts

    async def _go(self, record: Enqueued) -> str:
        """Turn the clock to its time and run it, unless it is too late by then."""
        self.clock.advance_to(record.due_at)
        if is_skipped(record.request, self.clock.unix_seconds):
            record.move(State.EXPIRED)
            self._moved(record)
            return State.EXPIRED.label
        return (await self.run_once(record)).kind.value

    async def run_once(self, record: Enqueued) -> Outcome:
        if len(record.ends) >= RUNS_MAX:
            raise RuntimeError(f"{record.type} has not ended after {RUNS_MAX} runs")
        ctx = Ctx(record.facts(round(self.clock.unix_seconds * 1000)), sink=record)
        end = await run_job(record.job, bytes(record.request.payload), ctx)
        decision = decision_after(record, end)
        record.take(end, decision, self.clock.unix_seconds)
        if end.failure is not None:
            _tell_hooks(ctx, record, end, is_dead=decision.state is State.DEAD)
        for one in started_by(ctx, end):
            child = self.accept(one.submission, one.id, parent=record.id)
            record.children += 1
            await self.run_inline(child)
        self._moved(record)
        return end

    def _moved(self, record: Enqueued) -> None:
        """Another state of a job may start those that wait for it, or be the end of them."""
        free = self._book.follow(record, self.clock.unix_seconds)
        if self.inline:  # otherwise `drain` finds them
            self._free += free

    # -- schedules -----------------------------------------------------------------------------

    def keep_schedule(self, name: str, wanted: ScheduleRequest, job: Job[..., Any]) -> bool:
        is_new = name not in self._schedules
        since_ms = round(self.clock.unix_seconds * 1000)
        self._schedules[name] = TestedSchedule(name, wanted, job, since_ms)
        return is_new

    def drop_schedules(self, source: str, kept: Collection[str]) -> list[str]:
        mine = [name for name, one in self._schedules.items() if one.request.source == source]
        gone = [name for name in mine if name not in kept]
        for name in gone:
            del self._schedules[name]
        return gone

    def _fire(self, before: float, now: float) -> None:
        """The ticks that this turn of the clock passed, oldest first; inline there is no clock."""
        if self.inline or now <= before:
            return
        span = round(before * 1000), round(now * 1000)
        due = [one for kept in self._schedules.values() for one in kept.submissions(*span)]
        for _, submission in sorted(due, key=itemgetter(0)):
            self.accept(submission)

    def find(self, job_id: str) -> Enqueued:
        for record in self.enqueued:
            if record.id == job_id:
                return record
        raise NotFound(f"no job {job_id} was enqueued under this testing mode")

    def accept(
        self, submission: Submission, job_id: str = "", parent: str | None = None
    ) -> Enqueued:
        """It is there, and has not run."""
        now = self.clock.unix_seconds
        wanted = submission.request.unique
        due_at = self._unique.due_at(wanted, due_of(submission.request, now), now)
        record = Enqueued(
            id=job_id or make_job_id(FIRST_SHARD, round(now * 1000), len(self.enqueued), 0),
            parent=parent,
            job=_job_of(submission),
            request=submission.request,
            created_at=now,
            due_at=due_at,
            state=State.SCHEDULED if due_at > now else State.QUEUED,
        )
        self.enqueued.append(record)
        self._unique.take(record, now)
        if submission.idempotency_key:
            self._by_key[submission.idempotency_key] = record
        return record

    def _turn(self, record: Enqueued) -> tuple[float, int, str]:
        """Due jobs by priority, 9 first, then age; then the others by when they fall due."""
        return max(record.due_at, self.clock.unix_seconds), -record.request.priority, record.id


def _tell_hooks(ctx: Ctx, record: Enqueued, end: Outcome, *, is_dead: bool) -> None:
    hooks = record.job.app.hooks
    if ctx.error is not None:
        hooks.failed(RunFailure(ctx, ctx.error))
    if is_dead and hooks.on_death:
        failure, error = end.failure, msgspec.json.decode(end.error or b"{}")
        label = failure.value if failure else ""
        hooks.died(JobDeath(ctx.job_id, ctx.type, ctx.tenant, ctx.attempt, label, error))


def due_of(request: JobRequest | Reschedule, now: float) -> float:
    """When it is due, by the test's clock; herds are not spread here."""
    if request.execute_at is not None:
        return max(request.execute_at.timestamp(), now)
    return now + (request.delay_seconds or 0)


def is_skipped(request: JobRequest, now: float) -> bool:
    last = request.not_after
    return last is not None and request.on_late in (None, "skip") and now > last.timestamp()


def decision_after(record: Enqueued, end: Outcome) -> Decision:
    policy = RetryPolicy(attempts_max=record.job.attempts_max, **record.job.retry.bounds)
    # no chance in tests: the middle of every jittered pause
    return decide(policy, record.tally, end, MIDDLE_SAMPLE)


def _job_of(submission: Submission) -> Job[..., Any]:
    """With its function: it runs here."""
    if not isinstance(submission.job, Job):
        raise TypeError(f"{submission.job.name} has no function that could be run here")
    return submission.job


def started_by(ctx: Ctx, end: Outcome) -> list[Gathered]:
    """What a run that ended like this has started: nothing, unless it succeeded."""
    follow_ups = ctx.take_follow_ups()
    gathered = [] if follow_ups is None else follow_ups.close()
    return gathered if end.kind is OutcomeKind.SUCCEEDED else []


def _same(known: Enqueued, submission: Submission) -> Enqueued:
    if known.request != submission.request:
        raise InvalidRequest(
            "the idempotency key was used with other arguments", code="IDEMPOTENCY_KEY_REUSED"
        )
    return known
