"""Handing jobs in: arguments are checked and encoded, then given to the door.

An `Enqueuer` is a job type plus a word about the jobs made with it. The synchronous half is the
asynchronous one, driven by `blocking.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, ParamSpec, TypeVar

from msgspec import Raw
from msgspec.structs import replace

from fairway.core.errors import FairwayError, Refused
from fairway.sdk.client.backend import Backend, JobType, Submission, submit_blocking
from fairway.sdk.client.calls import PlainCall, TypedCall, checked_key, key_of, typed
from fairway.sdk.client.flow_door import FlowDoor, OnAll
from fairway.sdk.client.flows import Flow, Signature, checked_after, not_in_a_flow
from fairway.sdk.client.handle import Handle, blocking_run
from fairway.sdk.client.tracing import current_traceparent
from fairway.sdk.durations import Duration, seconds_of
from fairway.sdk.options import refuse_unknown
from fairway.sdk.times import TimeOptions, time_fields
from fairway.wire.messages import POOL_PATTERN, POOL_WORDS, JobRequest

P = ParamSpec("P")
R = TypeVar("R")

PRIORITY_MAX = 9
REFUSALS_SHOWN = 5


class EnqueueOptions(TimeOptions, total=False):
    """What `job.options(...)` takes: a word about these jobs, not about the type."""

    pool: str  # another than the type's
    timeout: Duration  # of each run
    priority: int  # 9 first … 0 last, among the tenant's own jobs
    fair_key: str  # whose job it is among your own customers: they share your part evenly
    idempotency_key: str  # a second call with it makes no second job
    tags: Sequence[str]  # words to find the jobs by
    metadata: Mapping[str, str]  # words of your own, shown with them
    events: bool  # what becomes of them is written to your log of events
    after: Sequence[Handle[Any]]  # jobs that must succeed before this one starts
    on_all: OnAll  # of `after`: "succeeded", or "ended", however they do


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
        self._idempotency_key = checked_key(options.get("idempotency_key"))
        self._after = checked_after(options.get("after", ()))
        self._on_all: OnAll = options.get("on_all", "succeeded")
        if self._after and self._idempotency_key is not None:
            raise ValueError("after= and idempotency_key= do not go together")
        self._all_alike = self._said(options)

    def _said(self, options: EnqueueOptions) -> JobRequest:
        """What is the same for all of these jobs."""
        timeout_seconds = self._job.timeout_seconds
        if "timeout" in options:
            timeout_seconds = seconds_of(options["timeout"])
        return JobRequest(
            type=self._job.name,
            pool=checked_pool(options.get("pool", self._job.pool)),
            priority=checked_priority(options.get("priority", self._job.priority)),
            fair_key=options.get("fair_key"),
            timeout_seconds=timeout_seconds,
            tags=_checked_tags(options.get("tags", ())),
            metadata=dict(options.get("metadata", {})),
            events=options.get("events", False),
            **_times(self._job, options),
        )

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        """A call for a chain or a group, which is not made yet."""
        return Signature(self, args, kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        if self._after:
            return blocking_run(self._after_others([(args, kwargs)]))[0]
        backend, submission = self._job.app.door(), self.submission(args, kwargs)
        with self._around([submission]):
            return self._handle(backend, submit_blocking(backend, submission))

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        if self._after:
            return (await self._after_others([(args, kwargs)]))[0]
        return await self._submit(self._job.app.door(), self.submission(args, kwargs))

    def enqueue_many(self, calls: Iterable[PlainCall | TypedCall[P]]) -> list[Handle[R]]:
        if self._after:
            return blocking_run(self._after_others(_unkeyed(calls)))
        submissions = self.submissions(calls)
        return blocking_run(self._submit_many(self._job.app.door(), submissions))

    async def aenqueue_many(self, calls: Iterable[PlainCall | TypedCall[P]]) -> list[Handle[R]]:
        """Handles in the order of the calls; BatchRefused when any was kept out."""
        if self._after:
            return await self._after_others(_unkeyed(calls))
        return await self._submit_many(self._job.app.door(), self.submissions(calls))

    async def _after_others(
        self, calls: list[tuple[tuple[Any, ...], dict[str, Any]]]
    ) -> list[Handle[R]]:
        jobs = [Signature(self, args, kwargs) for args, kwargs in calls]
        flow = Flow("group", jobs, on_all=self._on_all, after=self._after)
        return (await flow.aenqueue()).jobs

    def handle(self, job_id: str) -> Handle[R]:
        return self._handle(self._job.app.door(), job_id)

    def flow_door(self) -> FlowDoor:
        return self._job.app.flow_door()

    @property
    def job_type(self) -> JobType:
        return self._job

    async def _submit(self, backend: Backend, submission: Submission) -> Handle[R]:
        with self._around([submission]):
            return self._handle(backend, await backend.submit(submission))

    async def _submit_many(
        self, backend: Backend, submissions: list[Submission]
    ) -> list[Handle[R]]:
        with self._around(submissions):
            answers = await backend.submit_many(submissions)
        decode = self._job.codec.decode_kept
        accepted: dict[int, Handle[R]] = {
            n: Handle(backend, a, decode) for n, a in enumerate(answers) if isinstance(a, str)
        }
        if len(accepted) < len(answers):
            refused = {n: a for n, a in enumerate(answers) if isinstance(a, FairwayError)}
            raise BatchRefused(accepted, refused)
        return list(accepted.values())

    def _around(self, submissions: list[Submission]) -> AbstractContextManager[None]:
        hooks = self._job.app.hooks
        if not hooks.around_enqueue:
            return nullcontext()
        return hooks.enqueue([one.request for one in submissions])

    def _handle(self, backend: Backend, job_id: str) -> Handle[R]:
        return Handle(backend, job_id, self._job.codec.decode_kept)

    def submissions(self, calls: Iterable[PlainCall | TypedCall[P]]) -> list[Submission]:
        """A key of the whole batch covers each job by its place."""
        found, trace = [], current_traceparent()
        for place, given in enumerate(calls):
            if type(given) is tuple and self._idempotency_key is None:  # most are: no call object
                found.append(Submission(self._job, self.request(given, {}), None, trace))
                continue
            call: TypedCall[P] = typed(given)
            key = key_of(call, self._idempotency_key, place)
            found.append(Submission(self._job, self.request(call.args, call.kwargs), key, trace))
        return found

    def submission(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Submission:
        """The job as a door gets it."""
        request = self.request(args, kwargs)
        return Submission(self._job, request, self._idempotency_key, current_traceparent())

    def request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobRequest:
        """The job as it goes over the wire; InvalidArguments when a value does not fit."""
        return self._request(self._job.codec.encode_arguments(args, kwargs))

    def request_after(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[JobRequest, str]:
        """The same without the first argument, which a result will be; and what that is called."""
        if self._job.unique_key.is_wanted:
            raise not_in_a_flow(self._job.name)
        payload, argument = self._job.codec.encode_after(args, kwargs)
        return self._request(payload, argument), argument

    def _request(self, payload: bytes, later: str = "") -> JobRequest:
        """A copy of what these jobs have in common, and the rest: half the time of a new one."""
        return replace(
            self._all_alike,
            payload=Raw(payload),
            limits=self._job.key_limits.of(payload, later),
            unique=self._job.unique_key.of(payload),
        )


def _times(job: JobType, options: EnqueueOptions) -> dict[str, Any]:
    """When these jobs are wanted; a debounced one only ever a while after its call."""
    times, delay_seconds = time_fields(options), job.unique_key.delay_seconds
    if delay_seconds is None:
        return times
    if "delay" in options or "at" in options:
        raise ValueError(f"{job.name} is debounced, which says when it runs: no delay= or at=")
    return times | {"delay_seconds": delay_seconds}


def checked_pool(pool: str) -> str:
    if not re.fullmatch(POOL_PATTERN, pool):
        raise ValueError(f"{pool!r} is no name for a pool: it must have {POOL_WORDS}")
    return pool


def checked_priority(priority: int) -> int:
    if not 0 <= priority <= PRIORITY_MAX:
        raise ValueError(f"priority must be 0 to {PRIORITY_MAX}, not {priority}")
    return priority


def _checked_tags(tags: Sequence[str]) -> list[str]:
    if isinstance(tags, str):  # a sequence of its letters, else
        raise ValueError(f"tags are a list of words, such as ({tags!r},)")
    return list(tags)


def _unkeyed(
    calls: Iterable[PlainCall | TypedCall[P]],
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """For a flow, which has no keys of its jobs' own."""
    found = []
    for given in calls:
        call: TypedCall[P] = typed(given)
        if call.idempotency_key is not None:
            raise ValueError("after= and idempotency keys do not go together")
        found.append((call.args, call.kwargs))
    return found
