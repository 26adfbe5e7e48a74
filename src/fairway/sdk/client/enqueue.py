"""Handing jobs in: arguments are checked and encoded, then given to the door.

An `Enqueuer` is a job type plus a word about the jobs made with it. The synchronous half is the
asynchronous one, driven by `blocking.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar

from msgspec import Raw

from fairway.core.errors import FairwayError, Refused
from fairway.sdk.client.backend import Backend, JobType, Submission
from fairway.sdk.client.handle import Handle, blocking_run
from fairway.sdk.durations import Duration, seconds_of
from fairway.sdk.options import refuse_unknown
from fairway.sdk.times import TimeOptions, time_fields
from fairway.wire.messages import POOL_PATTERN, POOL_WORDS, JobRequest

P = ParamSpec("P")
R = TypeVar("R")

#: One call in `enqueue_many`: positional arguments, or arguments by name.
Call: TypeAlias = tuple[Any, ...] | dict[str, Any]

PRIORITY_MAX = 9
KEY_LENGTH_MAX = 255
REFUSALS_SHOWN = 5


class EnqueueOptions(TimeOptions, total=False):
    """What `job.options(...)` takes: a word about these jobs, not about the type."""

    pool: str
    timeout: Duration
    priority: int  # 9 first … 0 last, among the tenant's own jobs
    fair_key: str  # whose job it is among your own customers: they share your part evenly
    idempotency_key: str


class BatchRefused(Refused):
    """Some jobs of a batch were refused. Both mappings go by the place in the batch."""

    code = "BATCH_REFUSED"

    def __init__(
        self, accepted: Mapping[int, Handle[Any]], refused: Mapping[int, FairwayError]
    ) -> None:
        self.accepted = accepted
        self.refused = refused
        shown = [f"#{n} {e.code}: {e.message}" for n, e in list(refused.items())[:REFUSALS_SHOWN]]
        rest = len(refused) - len(shown)
        if rest:
            shown.append(f"and {rest} more")
        total = len(accepted) + len(refused)
        super().__init__(f"{len(refused)} of {total} jobs were refused: {'; '.join(shown)}")


class Enqueuer(Generic[P, R]):
    """A job type with options for the jobs to come."""

    def __init__(self, job: JobType, options: EnqueueOptions) -> None:
        refuse_unknown(options, EnqueueOptions, f"{job.name}.options")
        self._job = job
        self._pool = checked_pool(options.get("pool", job.pool))
        self._priority = checked_priority(options.get("priority", job.priority))
        self._timeout_seconds = (
            seconds_of(options["timeout"]) if "timeout" in options else job.timeout_seconds
        )
        self._fair_key = options.get("fair_key")
        self._times = time_fields(options)
        self._idempotency_key = _checked_key(options.get("idempotency_key"))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        submission = self._submission(args, kwargs)
        return blocking_run(self._submit(self._job.app.door(), submission))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        return await self._submit(self._job.app.door(), self._submission(args, kwargs))

    def enqueue_many(self, calls: Iterable[Call]) -> list[Handle[R]]:
        submissions = self._submissions(calls)
        return blocking_run(self._submit_many(self._job.app.door(), submissions))

    async def aenqueue_many(self, calls: Iterable[Call]) -> list[Handle[R]]:
        """Handles in the order of the calls; BatchRefused when any was kept out."""
        return await self._submit_many(self._job.app.door(), self._submissions(calls))

    async def _submit(self, backend: Backend, submission: Submission) -> Handle[R]:
        return self._handle(backend, await backend.submit(submission))

    async def _submit_many(
        self, backend: Backend, submissions: list[Submission]
    ) -> list[Handle[R]]:
        answers = await backend.submit_many(submissions)
        refused = {n: a for n, a in enumerate(answers) if isinstance(a, FairwayError)}
        accepted = {
            n: self._handle(backend, a) for n, a in enumerate(answers) if isinstance(a, str)
        }
        if refused:
            raise BatchRefused(accepted, refused)
        return list(accepted.values())

    def _handle(self, backend: Backend, job_id: str) -> Handle[R]:
        return Handle(backend, job_id, self._job.codec.decode_result)

    def _submissions(self, calls: Iterable[Call]) -> list[Submission]:
        if self._idempotency_key is not None:
            raise ValueError("an idempotency_key names one job; enqueue_many makes many")
        return [self._submission(*_split(call)) for call in calls]

    def _submission(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Submission:
        return Submission(self._job, self.request(args, kwargs), self._idempotency_key)

    def request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobRequest:
        """The job as it goes over the wire; InvalidArguments when a value does not fit."""
        payload = self._job.codec.encode_arguments(args, kwargs)
        return JobRequest(
            type=self._job.name,
            payload=Raw(payload),
            pool=self._pool,
            priority=self._priority,
            fair_key=self._fair_key,
            timeout_seconds=self._timeout_seconds,
            limits=self._job.key_limits.of(payload),
            unique=self._job.unique_key.of(payload),
            **self._times,
        )


def checked_pool(pool: str) -> str:
    if not re.fullmatch(POOL_PATTERN, pool):
        raise ValueError(f"{pool!r} is no name for a pool: it must have {POOL_WORDS}")
    return pool


def checked_priority(priority: int) -> int:
    if not 0 <= priority <= PRIORITY_MAX:
        raise ValueError(f"priority must be 0 to {PRIORITY_MAX}, not {priority}")
    return priority


def _checked_key(key: str | None) -> str | None:
    if key is not None and not (
        0 < len(key) <= KEY_LENGTH_MAX and key.isascii() and key.isprintable()
    ):
        raise ValueError(f"an idempotency_key is 1 to {KEY_LENGTH_MAX} printable ASCII characters")
    return key


def _split(call: Call) -> tuple[tuple[Any, ...], dict[str, Any]]:
    match call:
        case tuple():
            return call, {}
        case dict():
            return (), call
    raise TypeError(f"each call is a tuple of arguments or a dict of them by name, not {call!r}")
