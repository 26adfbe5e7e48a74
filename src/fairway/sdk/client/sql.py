"""Jobs handed in by a transaction of the caller's own: there if it commits, never if it rolls back.

They are written by a function of the database, `fairway_enqueue`, on the caller's connection; a
server brings them in within a second of the commit (docs/TRANSACTIONS.md). The job's id is known at
once, and so is its handle; questions are answered once the job has come in.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any, ParamSpec, TypeAlias, TypeVar

from fairway.core.errors import FairwayError, InvalidRequest, NotFound
from fairway.core.unique import NOT_IN_A_TRANSACTION
from fairway.sdk.client.backend import Backend, Submission, testing_backend
from fairway.sdk.client.calls import PlainCall, TypedCall
from fairway.sdk.client.enqueue import Enqueuer
from fairway.sdk.client.handle import Handle, blocking_run
from fairway.sdk.client.sql_drivers import SqlCall, afetch, fetch
from fairway.sdk.http.sse import Event
from fairway.sdk.job import Job
from fairway.wire.messages import JobView, Reschedule, encode
from fairway.wire.run_logs import LogLine

P = ParamSpec("P")
R = TypeVar("R")
AnyCall: TypeAlias = PlainCall | TypedCall[...]

REQUEST_BYTES_MAX = 64 << 10  # as the function has it
CALLS_MAX = 10_000  # in one statement
ARRIVAL_SECONDS = 10.0  # from the first question on: a server may be restarting
LOOK_SECONDS = 0.1


def enqueue(
    connection: Any, job: Job[P, R] | Enqueuer[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> Handle[R]:
    """Hand a job in with the transaction that is open on this connection.

    `job` is a job, or `job.options(…)`. For psycopg, psycopg2, SQLAlchemy and Django.
    """
    submission = _enqueuer(job).submission(args, kwargs)
    if (door := testing_backend.get()) is not None:
        return _handle(door, submission, blocking_run(door.submit(submission)))
    (job_id,) = fetch(connection, _one(submission))
    return _arriving(submission, job_id)


async def aenqueue(
    connection: Any, job: Job[P, R] | Enqueuer[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> Handle[R]:
    """The same for asyncpg, psycopg's AsyncConnection and SQLAlchemy's asynchronous half."""
    submission = _enqueuer(job).submission(args, kwargs)
    if (door := testing_backend.get()) is not None:
        return _handle(door, submission, await door.submit(submission))
    (job_id,) = await afetch(connection, _one(submission))
    return _arriving(submission, job_id)


def enqueue_many(
    connection: Any,
    job: Job[..., R] | Enqueuer[..., R],
    calls: Iterable[AnyCall],
) -> list[Handle[R]]:
    """Many jobs in one statement, up to 10 000; handles in the order of the calls."""
    submissions = _enqueuer(job).submissions(calls)
    if (door := testing_backend.get()) is not None:
        ids = _accepted(blocking_run(door.submit_many(submissions)))
        return [_handle(door, *one) for one in zip(submissions, ids, strict=True)]
    found = fetch(connection, _many(submissions)) if submissions else []
    return [_arriving(*one) for one in zip(submissions, found, strict=True)]


async def aenqueue_many(
    connection: Any,
    job: Job[..., R] | Enqueuer[..., R],
    calls: Iterable[AnyCall],
) -> list[Handle[R]]:
    submissions = _enqueuer(job).submissions(calls)
    if (door := testing_backend.get()) is not None:
        ids = _accepted(await door.submit_many(submissions))
        return [_handle(door, *one) for one in zip(submissions, ids, strict=True)]
    found = await afetch(connection, _many(submissions)) if submissions else []
    return [_arriving(*one) for one in zip(submissions, found, strict=True)]


class ArrivingJobs:
    """A door that knows of jobs which are on their way: not there yet is not the same as absent."""

    def __init__(self, door: Backend) -> None:
        self._door = door
        self._ends_at: float | None = None  # nobody has asked yet

    async def view(self, job_id: str, wait_seconds: float = 0) -> JobView:
        while True:
            try:
                return await self._door.view(job_id, wait_seconds)
            except NotFound as error:
                await self._be_patient(job_id, error)

    async def _be_patient(self, job_id: str, error: NotFound) -> None:
        now = time.monotonic()
        if self._ends_at is None:
            self._ends_at = now + ARRIVAL_SECONDS
        if now >= self._ends_at:
            raise NotFound(
                f"{job_id} has not come in. Was its transaction committed? If it was, look"
                " whether it was refused: `fairway events`.",
                code=error.code,
            ) from error
        await asyncio.sleep(LOOK_SECONDS)

    async def submit(self, submission: Submission) -> str:
        return await self._door.submit(submission)

    async def submit_many(self, submissions: list[Submission]) -> list[str | FairwayError]:
        return await self._door.submit_many(submissions)

    async def result(self, job_id: str) -> bytes:
        return await self._door.result(job_id)

    async def cancel(self, job_id: str, *, children: bool = False) -> JobView:
        await self.view(job_id)
        return await self._door.cancel(job_id, children=children)

    async def children(self, job_id: str) -> list[JobView]:
        await self.view(job_id)
        return await self._door.children(job_id)

    async def reschedule(self, job_id: str, wanted: Reschedule) -> JobView:
        await self.view(job_id)
        return await self._door.reschedule(job_id, wanted)

    async def replay(self, job_id: str) -> JobView:
        await self.view(job_id)
        return await self._door.replay(job_id)

    async def events(self, job_id: str) -> AsyncIterator[Event]:
        await self.view(job_id)
        async for event in self._door.events(job_id):
            yield event

    async def logs(
        self, job_id: str, attempt: int | None = None, *, follow: bool = False
    ) -> AsyncIterator[LogLine]:
        await self.view(job_id)
        async for line in self._door.logs(job_id, attempt, follow=follow):
            yield line


def _enqueuer(job: Job[P, R] | Enqueuer[P, R]) -> Enqueuer[P, R]:
    if isinstance(job, Job):
        return job.options()
    if isinstance(job, Enqueuer):
        return job
    raise TypeError(f"give a job or job.options(…) after the connection, not {job!r}")


def _one(submission: Submission) -> SqlCall:
    return SqlCall("SELECT fairway_enqueue({})", _request(submission))


def _many(submissions: list[Submission]) -> SqlCall:
    if len(submissions) > CALLS_MAX:
        raise ValueError(f"at most {CALLS_MAX} jobs in one call, not {len(submissions)}")
    text = (
        "SELECT fairway_enqueue(r.request) FROM unnest(CAST({} AS text[]))"
        " WITH ORDINALITY AS r (request, place) ORDER BY r.place"
    )
    return SqlCall(text, [_request(one) for one in submissions])


def _request(submission: Submission) -> str:
    if submission.idempotency_key is not None:
        raise ValueError(
            "a transaction makes its job once; an idempotency_key is for jobs over HTTP. What must"
            " not be twice, keep in a table of yours with a unique constraint."
        )
    if submission.request.unique is not None:  # later there is nobody to be told
        raise ValueError(f"{submission.request.type}: {NOT_IN_A_TRANSACTION}")
    request = encode(submission.request)
    if len(request) > REQUEST_BYTES_MAX:
        raise InvalidRequest(
            f"This job has {len(request)} bytes; in a transaction at most {REQUEST_BYTES_MAX} are"
            " taken. Keep what is large in a table or in object storage, and hand in where it is.",
            code="PAYLOAD_TOO_LARGE",
            field="/payload",
        )
    return request.decode()


def _arriving(submission: Submission, job_id: Any) -> Handle[Any]:
    return _handle(ArrivingJobs(submission.job.app.door()), submission, str(job_id))


def _handle(door: Backend, submission: Submission, job_id: str) -> Handle[Any]:
    return Handle(door, job_id, submission.job.codec.decode_kept)


def _accepted(answers: list[str | FairwayError]) -> list[str]:
    for answer in answers:
        if isinstance(answer, FairwayError):
            raise answer
    return [str(answer) for answer in answers]
