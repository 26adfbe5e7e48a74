"""One run of one handler under test, with everything it said. No mode needed, nothing stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from fairway.core.failure.retry import Counters, Decision, Tally
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.sdk.client.backend import Submission, testing_backend
from fairway.sdk.client.handle import blocking_run
from fairway.sdk.handler.context import Ctx
from fairway.sdk.handler.follow_ups import Gathered
from fairway.sdk.job import Job
from fairway.sdk.run import run_job
from fairway.sdk.testing.clock import Clock
from fairway.sdk.testing.memory import decision_after, due_of, started_by
from fairway.sdk.testing.record import Enqueued, LogLine

R = TypeVar("R")

JOB_ID = "00000000-0000-7000-8000-000000000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Performed(Generic[R]):
    """What one run came to."""

    outcome: OutcomeKind
    result: R | None  # as a caller would decode it
    failure: FailureClass | None
    error: dict[str, Any]  # {type, message, stack}
    delay_seconds: float  # until the next run, by the retry policy or by the handler's wish
    decision: Decision  # what would become of the job
    logs: list[LogLine]
    progress: list[Any]
    enqueued: list[Enqueued]  # what the run started, by succeeding


def perform(job: Job[..., R], *args: Any, attempt: int = 1, **kwargs: Any) -> Performed[R]:
    """Run the handler once, as if this were its n-th attempt."""
    return blocking_run(aperform(job, *args, attempt=attempt, **kwargs))


async def aperform(job: Job[..., R], *args: Any, attempt: int = 1, **kwargs: Any) -> Performed[R]:
    request = job.options().request(args, kwargs)
    now = Clock().unix_seconds
    record = Enqueued(
        id=JOB_ID,
        job=job,
        request=request,
        created_at=now,
        due_at=now,
        tally=Tally(attempt - 1, attempt - 1, Counters(app_error=attempt - 1)),
    )
    ctx = Ctx(record.facts(), sink=record)
    end = await run_job(job, bytes(request.payload), ctx)
    enqueued = [_enqueued(one, now) for one in started_by(ctx, end)]
    if (mode := testing_backend.get()) is not None:  # as if it had run there
        await mode.submit_many([Submission(one.job, one.request) for one in enqueued])
    return _performed(record, end, enqueued)


def _enqueued(one: Gathered, now: float) -> Enqueued:
    job, request = one.submission.job, one.submission.request
    return Enqueued(
        id=one.id,
        job=job,
        request=request,
        created_at=now,
        due_at=due_of(request, now),
        parent=JOB_ID,
    )


def _performed(record: Enqueued, end: Outcome, enqueued: list[Enqueued]) -> Performed[Any]:
    decision = decision_after(record, end)
    return Performed(
        outcome=end.kind,
        result=None if end.result is None else record.job.codec.decode_result(end.result),
        failure=end.failure,
        error=msgspec.json.decode(end.error) if end.error else {},
        delay_seconds=decision.delay_ms / 1000,
        decision=decision,
        logs=record.logs,
        progress=record.progress_said,
        enqueued=enqueued,
    )
