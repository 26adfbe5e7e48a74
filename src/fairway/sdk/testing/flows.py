"""Flows in memory: who waits for whom, by the functions that decide it on a server.

What is counted there is looked up here: a member's state is at hand. Bounds and refusals are those
of a server, so that a flow which passes a test is one that a server takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Protocol

import msgspec

from fairway.core.errors import Conflict, InvalidRequest, NotFound
from fairway.core.flows import (
    AFTER_MAX,
    CANCELLED,
    CHAIN_MAX,
    FLOWS_OF_A_JOB_MAX,
    GROUP_MAX,
    STARTERS_MAX,
    TOO_LARGE,
    FlowTally,
    Kind,
    Needs,
    Step,
    label_of,
    member_ids,
    step_of,
    tally_of,
    with_argument,
)
from fairway.core.ids import FIRST_SHARD, JobId, make_job_id
from fairway.core.lifecycle import LIVE, State
from fairway.sdk.client.backend import Submission
from fairway.sdk.client.flow_door import FlowIds, FlowPlan, FlowStatus
from fairway.sdk.testing.clock import Clock
from fairway.sdk.testing.record import Enqueued
from fairway.wire.messages import JobRequest

HANDED_ON_BYTES_MAX = 64 << 10  # of a result: FAIRWAY_INLINE_BYTES_MAX, unless a server has another
WENT_WRONG = (State.DEAD, State.CANCELLED, State.EXPIRED)


class Mode(Protocol):
    """The testing mode that the jobs of flows run in."""

    clock: Clock
    enqueued: list[Enqueued]

    def find(self, job_id: str) -> Enqueued:
        """NotFound when it was not handed in here."""

    def accept(self, submission: Submission, job_id: str = "") -> Enqueued:
        """It is there, and has not run."""

    async def run_inline(self, *records: Enqueued) -> None:
        """These, and whatever waited for them, if jobs run as they come."""

    async def cancel(self, job_id: str) -> object:
        """Unless it has ended."""

    async def replay(self, job_id: str) -> object:
        """A dead letter."""


@dataclass(slots=True, kw_only=True)
class MemoryFlow:
    """Jobs whose ends others wait for."""

    id: str
    kind: Kind
    needs: Needs
    members: list[Enqueued]
    waiting: list[Enqueued]
    created_at: float  # of the test's clock
    argument: str | None = None  # of a link in a chain: what the result of its one member is to be
    last_failed: Enqueued | None = None
    finished_at: float | None = None

    @property
    def tally(self) -> FlowTally:
        return tally_of([one.state for one in self.members])

    def note(self, moved: Enqueued, now: float) -> None:
        """One of its members is in another state."""
        if moved.state in WENT_WRONG:
            self.last_failed = moved
        self.finished_at = None if self.tally.live else now

    def settle(self, now: float) -> tuple[list[Enqueued], list[Enqueued]]:
        """Start or give up those that still wait: whom it started, and whom it gave up."""
        step = step_of(self.needs, self.tally, is_open=False)
        waiting = [one for one in self.waiting if one.is_held and one.state in LIVE]
        if step is Step.WAIT or not waiting:
            return [], []
        result = self._handed_on()
        if step is Step.GIVE_UP or len(result) > HANDED_ON_BYTES_MAX:
            for one in waiting:
                one.give_up(CANCELLED if step is Step.GIVE_UP else TOO_LARGE)
            return [], waiting
        for one in waiting:
            payload = bytes(one.request.payload)
            if self.argument is not None:
                payload = with_argument(payload, self.argument, result)
            one.release(payload, now)
        return waiting, []

    def _handed_on(self) -> bytes:
        """The result of its one member; nothing when nobody takes it."""
        ends = self.members[0].ends if self.argument is not None else []
        return (ends[-1].result if ends else None) or b"null"

    def status(self) -> FlowStatus:
        tally, failed = self.tally, self.last_failed
        error = None if failed is None else failed.view().error
        return FlowStatus(
            id=self.id,
            kind=self.kind.name.lower(),
            state=label_of(self.kind, tally, is_open=False),
            on_all=self.needs.name.lower(),
            total=tally.members,
            succeeded=tally.succeeded,
            failed=tally.failed,
            cancelled=tally.cancelled,
            complete=True,
            callback=self.waiting[0].id if self.waiting else None,
            failed_job=None if failed is None else failed.id,
            error=None if error is None else msgspec.json.decode(error),
            created_at=_moment(self.created_at),
            finished_at=None if self.finished_at is None else _moment(self.finished_at),
        )


class FlowBook:
    """All flows of one testing mode, and the links between their jobs."""

    def __init__(self) -> None:
        self._flows: dict[str, MemoryFlow] = {}

    def add(self, flow: MemoryFlow) -> None:
        self._flows[flow.id] = flow
        for one in flow.members:
            one.flows.append(flow.id)

    def named(self, flow_id: str) -> MemoryFlow:
        flow = self._flows.get(flow_id)
        if flow is None or flow.kind is Kind.LINK:
            raise NotFound(f"no flow {flow_id} was handed in under this testing mode")
        return flow

    def follow(self, moved: Enqueued, now: float) -> list[Enqueued]:
        """What a job's new state means for those that wait: answers who may run now.

        Who is given up is a member of other flows, perhaps: so on, until nobody is.
        """
        free: list[Enqueued] = []
        line = deque([moved])
        while line:
            one = line.popleft()
            for flow_id in one.flows:
                flow = self._flows[flow_id]
                flow.note(one, now)
                started, given_up = flow.settle(now)
                free += started
                line += given_up
        return free


class MemoryFlowDoor:
    """Takes chains and groups under a testing mode."""

    def __init__(self, mode: Mode, book: FlowBook) -> None:
        self._mode = mode
        self._book = book

    async def submit(self, plan: FlowPlan) -> FlowIds:
        check(plan)
        needed = [self._mode.find(job) for job in dict.fromkeys(plan.after)]
        needs = Needs[plan.on_all.upper()]
        waits = _must_wait(needed, needs)
        flow = self._made(plan, needs)
        starters = flow.members[:1] if flow.kind is Kind.CHAIN else flow.members
        if waits:
            for one in starters:
                one.hold()
            self._link(flow, 0, needed, starters, needs)
        await self._mode.run_inline(*starters)
        callback = flow.waiting[0].id if flow.waiting else None
        return FlowIds(flow.id, [one.id for one in flow.members], callback)

    async def look(self, flow_id: str) -> FlowStatus:
        return self._book.named(flow_id).status()

    async def cancel(self, flow_id: str) -> FlowStatus:
        """Its callback first, so that nothing starts because the rest has ended."""
        flow = self._book.named(flow_id)
        for one in (*flow.waiting, *flow.members):
            await self._mode.cancel(one.id)
        return flow.status()

    async def replay(self, flow_id: str) -> int:
        flow = self._book.named(flow_id)
        dead = [one for one in (*flow.waiting, *flow.members) if one.state is State.DEAD]
        for one in dead:
            await self._mode.replay(one.id)
        return len(dead)

    def _made(self, plan: FlowPlan, needs: Needs) -> MemoryFlow:
        """The flow as a whole; in a chain a link from each job to the next."""
        mode, now = self._mode, self._mode.clock.unix_seconds
        flow_id = make_job_id(FIRST_SHARD, round(now * 1000), len(mode.enqueued), 1)
        members = self._accepted(plan, member_ids(flow_id, len(plan.jobs)))
        waiting = []
        if plan.callback is not None:
            waiting = [mode.accept(Submission(plan.types[-1], plan.callback))]
            waiting[0].hold()
        flow = MemoryFlow(
            id=flow_id,
            kind=Kind[plan.kind.upper()],
            needs=needs,
            members=members,
            waiting=waiting,
            created_at=now,
        )
        self._book.add(flow)
        if flow.kind is Kind.CHAIN:
            for n, (before, after) in enumerate(pairwise(members), 1):
                after.hold()
                self._link(flow, n, [before], [after], Needs.SUCCEEDED, plan.arguments[n])
        return flow

    def _accepted(self, plan: FlowPlan, ids: Sequence[JobId]) -> list[Enqueued]:
        given = zip(plan.types, plan.jobs, ids, strict=False)  # the last type is the callback's
        return [self._mode.accept(Submission(type_, job), id_) for type_, job, id_ in given]

    def _link(
        self,
        flow: MemoryFlow,
        place: int,
        members: list[Enqueued],
        waiting: list[Enqueued],
        needs: Needs,
        argument: str | None = None,
    ) -> None:
        link = MemoryFlow(
            id=f"{flow.id}/{place}",
            kind=Kind.LINK,
            needs=needs,
            members=members,
            waiting=waiting,
            created_at=flow.created_at,
            argument=argument,
        )
        self._book.add(link)


def _must_wait(needed: Sequence[Enqueued], needs: Needs) -> bool:
    """Whether there is anything left to wait for; Conflict when it will never come."""
    step = step_of(needs, tally_of([one.state for one in needed]), is_open=False)
    if not needed or step is Step.RELEASE:
        return False
    if step is Step.GIVE_UP:
        raise Conflict("A job in `after` was cancelled or has expired: it will never succeed.")
    undecided = [one for one in needed if not one.state.is_final or one.state is State.DEAD]
    if any(len(one.flows) >= FLOWS_OF_A_JOB_MAX for one in undecided):
        raise Conflict(f"A job in `after` is waited for by {FLOWS_OF_A_JOB_MAX} flows already.")
    return True


def check(plan: FlowPlan) -> None:
    """What a server would not take either."""
    jobs_max = CHAIN_MAX if plan.kind == "chain" else GROUP_MAX
    if len(plan.jobs) > jobs_max:
        raise InvalidRequest(f"A {plan.kind} has at most {jobs_max} jobs.", field="/jobs")
    if len(plan.after) > AFTER_MAX:
        raise InvalidRequest(f"A job waits for at most {AFTER_MAX} others.", field="/after")
    if plan.kind == "group" and plan.after and len(plan.jobs) > STARTERS_MAX:
        raise InvalidRequest(
            f"At most {STARTERS_MAX} jobs of a group wait for others.", field="/jobs"
        )
    callback = [] if plan.callback is None else [plan.callback]
    if any(_has_times(one) for one in (*plan.jobs, *callback)):
        raise InvalidRequest("Jobs of a flow have no times of their own.", field="/execute_at")


def _has_times(request: JobRequest) -> bool:
    times = (request.execute_at, request.delay_seconds, request.not_after, request.on_late)
    return any(one is not None for one in times)


def _moment(unix_seconds: float) -> datetime:
    return datetime.fromtimestamp(unix_seconds, UTC)
