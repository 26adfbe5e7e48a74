"""Lets in what a run starts, by the rules for every other submission, and ends the run with it.

Nothing is written here: the recorder writes the run's end and its follow-ups together. What cannot
be let in fails the run, by name: its handler is over, and nobody else can be told.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairway.core.errors import FairwayError, InvalidRequest, LimitReached, Unavailable
from fairway.core.ids import TypeId
from fairway.core.job import QueuedJob
from fairway.core.run.follow_up_ids import flaw_of_moment
from fairway.core.run.follow_ups import (
    Children,
    WantedFollowUps,
    children_of,
    marks_of_children,
    timing_of_wish,
)
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.runtime.telemetry import logger
from fairway.services.backpressure.disk_reserve import DiskFull
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.registry.type_names import Namer
from fairway.services.sessions.sessions import End, Lease, Session
from fairway.services.store_clock import StoreClock
from fairway.services.submit.admission import Admission

if TYPE_CHECKING:
    from fairway.runtime.otlp_spans import JobSpans

log = logger("follow_ups")

DOUBT_SECONDS = 1.0  # until a report is asked for again that could not be judged
LIMITED_ELSEWHERE = (
    "Limits by key are judged in the first shard of a tenant with several, and this job runs in"
    " another: submit such jobs with a client."
)


class FollowUpIntake:
    def __init__(
        self,
        directory: Directory,
        dispatcher: Dispatcher,
        admission: Admission,
        store_clock: StoreClock,
        give_back: Callable[[Lease], None],
        spans: JobSpans | None = None,
    ) -> None:
        self._spans = spans
        self._give_back = give_back  # the room for its result: the run does not succeed
        self._directory = directory
        self._dispatcher = dispatcher
        self._admission = admission
        self._store_clock = store_clock
        self._random = random.Random()
        self._naming: dict[Lease, asyncio.Task[None]] = {}

    def take(self, end: End, wanted: WantedFollowUps) -> None:
        """A run under a lease in force succeeded, and wants these."""
        lease = end.lease
        if lease in self._naming:
            return  # said again meanwhile
        tenant = self._directory.tenants.get(lease.job.tenant)
        names = self._directory.names
        namer = Namer(lease.job.tenant)
        if tenant is None:
            self._ask_again(lease)
        elif all(names.is_named_by(namer, one.type) for one in wanted.jobs):
            self._conclude(end, wanted, tenant, names.ids)
        else:  # a name may take a turn at the store: a worker's call does not wait for that
            work = self._name_and_conclude(end, lease.session, wanted, tenant)
            self._naming[lease] = asyncio.create_task(work, name="follow-ups")

    async def _name_and_conclude(
        self, end: End, session: Session, wanted: WantedFollowUps, tenant: Tenant
    ) -> None:
        """`session` is whose report it is: the lease may be another's when it is named."""
        lease, refusal, types = end.lease, None, dict[str, TypeId]()
        try:
            types = await self._directory.names.know(tenant.id, [one.type for one in wanted.jobs])
        except InvalidRequest as error:
            refusal = error
        except Exception as error:
            log.warning("follow-ups not named yet", job=lease.job.id, error=repr(error))
            self._ask_again(lease)
            return
        finally:
            del self._naming[lease]
        if not self._dispatcher.stands(lease):
            self._give_back(lease)
        elif lease.session is not session:  # its worker began anew, and was not heard meanwhile
            self._ask_again(lease)
        elif refusal is not None:
            self._refuse(end, tenant, refusal)
        else:
            self._conclude(end, wanted, tenant, types)

    def _ask_again(self, lease: Lease) -> None:
        """Its worker says with its next hello what nobody has heard."""
        self._give_back(lease)
        asyncio.get_running_loop().call_later(DOUBT_SECONDS, lease.session.doubt)

    def _conclude(
        self, end: End, wanted: WantedFollowUps, tenant: Tenant, types: Mapping[str, TypeId]
    ) -> None:
        try:
            children = self._admitted(end, wanted, tenant, types)
        except FairwayError as error:
            self._refuse(end, tenant, error)
        else:
            self._dispatcher.succeeded([replace(end, children=children)])

    def _admitted(
        self, end: End, wanted: WantedFollowUps, tenant: Tenant, types: Mapping[str, TypeId]
    ) -> Children:
        parent, now_ms = end.lease.job, self._store_clock.unix_ms()
        flaw = flaw_of_moment(parent.id, wanted.at_ms, now_ms)
        if flaw is not None:
            raise InvalidRequest(flaw)
        if tenant.part_of is not None and any(one.limits for one in wanted.jobs):
            raise InvalidRequest(LIMITED_ELSEWHERE)
        self._admission.admit_follow_ups(tenant, len(wanted.jobs))
        if tenant.job_events:
            wanted = wanted.with_events()
        timings = [timing_of_wish(one.wish, now_ms, self._random.random()) for one in wanted.jobs]
        numbers = [types[one.type] for one in wanted.jobs]
        jobs = self._sampled(children_of(parent, end.lease.epoch, wanted, numbers, timings))
        later = frozenset(
            job.id
            for job, timing in zip(jobs, timings, strict=True)
            if timing is not None and timing.due_ms > now_ms
        )
        return Children(wanted.at_ms, jobs, later, marks_of_children(jobs, wanted))

    def _sampled(self, jobs: list[QueuedJob]) -> list[QueuedJob]:
        """What their trace says of being sampled is a worker's word."""
        if self._spans is None:
            return jobs
        keeps = self._spans.keeps
        return [
            job if job.trace is None else replace(job, trace=keeps(job.trace, job.tenant))
            for job in jobs
        ]

    def _refuse(self, end: End, tenant: Tenant, error: FairwayError) -> None:
        self._give_back(end.lease)
        self._admission.count_refusal(tenant, error.code)
        self._dispatcher.ended(end.lease, end.number or 0, refused(error, end.ran_us))


def refused(error: FairwayError, ran_us: int) -> Outcome:
    """How a run ends whose follow-ups are not let in: tried again if that can help."""
    may_pass = isinstance(error, LimitReached | Unavailable)
    delay_seconds = 0.0  # else the pause is that of its type
    if isinstance(error, LimitReached | DiskFull):
        delay_seconds = error.retry_after_seconds
    place = f" ({error.field})" if error.field else ""
    document = {
        "type": "FollowUpsRefused",
        "message": f"The run's follow-ups were not accepted: {error.message}{place} [{error.code}]",
        "stack": "",
    }
    return Outcome(
        OutcomeKind.FAILED,
        ran_us,
        failure=FailureClass.APP_ERROR if may_pass else FailureClass.PERMANENT,
        error=msgspec.json.encode(document),
        delay_ms=round(delay_seconds * 1000),
    )
