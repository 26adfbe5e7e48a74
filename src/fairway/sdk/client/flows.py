"""Chains and groups: jobs that wait for others, handed in together and seen as one.

    chain(fetch.s(url), parse.s(), store.s(table="pages")).enqueue()
    group([resize.s(one) for one in images], then=publish.s(), on_all="ended").enqueue()

A `Signature` is a call that is not made yet. In a chain the result of each job is the first
argument of the next, so that one is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from fairway.core.errors import InvalidRequest
from fairway.core.flows import PAGE_MAX
from fairway.core.unique import NOT_IN_A_FLOW
from fairway.sdk.client.flow_door import FlowDoor, FlowPlan, FlowStatus, OnAll
from fairway.sdk.client.handle import Handle, blocking_run
from fairway.wire.messages import JobRequest


class Caller(Protocol):
    """A job type with options, as far as flows know it."""

    def request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobRequest:
        """The job as it goes over the wire."""

    def request_after(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[JobRequest, str]:
        """Without its first argument, which is a result; and what that one is called."""

    def handle(self, job_id: str) -> Handle[Any]:
        """Of a job of this type."""

    def flow_door(self) -> FlowDoor:
        """Where its flows are handed in."""

    @property
    def job_type(self) -> Any:
        """What its jobs are of."""


class Signature(NamedTuple):
    """A job and arguments for it: what `job.s(...)` makes."""

    caller: Caller
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def request(self) -> JobRequest:
        request = self.caller.request(self.args, self.kwargs)
        if request.unique is not None:
            raise not_in_a_flow(request.type)
        return request

    def request_after(self) -> tuple[JobRequest, str]:
        return self.caller.request_after(self.args, self.kwargs)


class Flow:
    """A chain or a group that is not handed in yet."""

    def __init__(
        self, kind: Literal["group", "chain"], jobs: Iterable[Signature], **plan: Any
    ) -> None:
        self._kind = kind
        self._jobs = list(jobs)
        self._then: Signature | None = plan.get("then")
        self._on_all: OnAll = plan.get("on_all", "succeeded")
        self._after = checked_after(plan.get("after", ()))
        if not self._jobs:
            raise ValueError(f"a {kind} has at least one job")
        if self._on_all not in ("succeeded", "ended"):
            raise ValueError(f"on_all is 'succeeded' or 'ended', not {self._on_all!r}")
        for one in (*self._jobs, *([self._then] if self._then is not None else [])):
            if not isinstance(one, Signature):
                raise TypeError(f"a {kind} is made of job.s(...), not of {one!r}")

    def enqueue(self) -> FlowHandle:
        return blocking_run(self.aenqueue())

    async def aenqueue(self) -> FlowHandle:
        """All of it is accepted, or nothing; a large group comes in pages."""
        door, plan = self._jobs[0].caller.flow_door(), self._plan()
        made = await door.submit(plan)
        pairs = zip(self._jobs, made.jobs, strict=True)
        handles = [one.caller.handle(job) for one, job in pairs]
        last = handles[-1] if self._kind == "chain" else None
        if self._then is not None and made.callback is not None:
            last = self._then.caller.handle(made.callback)
        return FlowHandle(door, made.id, handles, last)

    def _plan(self) -> FlowPlan:
        after = [one.id for one in self._after]
        then = [] if self._then is None else [self._then]
        types = [one.caller.job_type for one in (*self._jobs, *then)]
        if self._kind == "group":
            callback = None if self._then is None else self._then.request()
            jobs = [one.request() for one in self._jobs]
            return FlowPlan("group", jobs, (), callback, self._on_all, after, types)
        first, *others = self._jobs
        rest = [one.request_after() for one in others]
        jobs = [first.request(), *[request for request, _ in rest]]
        arguments = [None, *[argument for _, argument in rest]]
        return FlowPlan("chain", jobs, arguments, None, self._on_all, after, types)


def chain(*jobs: Signature, after: Sequence[Handle[Any]] = ()) -> Flow:
    """One after the other; the result of each is the first argument of the next."""
    return Flow("chain", jobs, after=after)


def group(
    jobs: Iterable[Signature],
    *,
    then: Signature | None = None,
    on_all: OnAll = "succeeded",
    after: Sequence[Handle[Any]] = (),
) -> Flow:
    """All at once; `then` starts when all have succeeded, or, by choice, when all have ended."""
    return Flow("group", jobs, then=then, on_all=on_all, after=after)


class FlowHandle:
    """A flow that was handed in: its state as a whole, and handles of its jobs.

    It has `id`, `jobs` and `last`, whose result is the flow's.
    """

    def __init__(
        self,
        door: FlowDoor,
        flow_id: str,
        jobs: Sequence[Handle[Any]] = (),
        last: Handle[Any] | None = None,
    ) -> None:
        self.id = flow_id
        self.jobs = list(jobs)
        self.last = last  # whose result is the flow's: the callback, or the last of the chain
        self._door = door

    async def astatus(self) -> FlowStatus:
        """State, counts, and the last job of it that did not succeed."""
        return await self._door.look(self.id)

    def status(self) -> FlowStatus:
        return blocking_run(self.astatus())

    async def aresult(self, timeout: Any = None) -> Any:
        """The result of the callback, or of the last job of the chain."""
        if self.last is None:
            raise InvalidRequest(
                "a group without then= has no result of its own: ask its jobs, handle.jobs"
            )
        return await self.last.aresult(timeout)

    def result(self, timeout: Any = None) -> Any:
        return blocking_run(self.aresult(timeout))

    async def acancel(self) -> FlowStatus:
        """What waits is cancelled, what runs is asked to stop; the callback does not start."""
        return await self._door.cancel(self.id)

    def cancel(self) -> FlowStatus:
        return blocking_run(self.acancel())

    async def areplay(self) -> int:
        """Put what failed of it back into the queue; answers how many jobs."""
        return await self._door.replay(self.id)

    def replay(self) -> int:
        return blocking_run(self.areplay())

    def __repr__(self) -> str:
        return f"<FlowHandle {self.id}: {len(self.jobs)} jobs>"


def not_in_a_flow(job_type: str) -> InvalidRequest:
    return InvalidRequest(f"{job_type}: {NOT_IN_A_FLOW}", field="/unique")


def checked_after(others: Any) -> list[Handle[Any]]:
    """`after=` is a list of handles; one alone, or an id, is what people write first."""
    given: list[Any] = list(others) if isinstance(others, Iterable) else [None]
    if not all(isinstance(one, Handle) for one in given):
        raise TypeError("after= is a list of handles, as in after=[handle]")
    return given


def pages_of(jobs: Sequence[Any]) -> list[Sequence[Any]]:
    return [jobs[start : start + PAGE_MAX] for start in range(0, len(jobs), PAGE_MAX)]
