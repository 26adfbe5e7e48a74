"""A handle: one job that was handed in, seen from the caller's side.

It keeps an id and nothing of the job's state: every question is asked anew. A handle can be made
again from the id alone, in another process, at any later time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from datetime import datetime
from math import inf
from typing import Any, Generic, TypeVar

import msgspec

from fairway.core.errors import FairwayError, LimitReached, Unavailable
from fairway.core.lifecycle import BY_LABEL
from fairway.sdk.client.backend import Backend, HasDoor
from fairway.sdk.client.failures import StillRunning, ended_without_result
from fairway.sdk.client.status import JobStatus, status_of
from fairway.sdk.durations import Duration, seconds_of
from fairway.sdk.handler.codec import NothingKept
from fairway.sdk.handler.outcomes import Cancel, Snooze
from fairway.sdk.http.sse import Event
from fairway.sdk.http.unreachable import Unreachable
from fairway.sdk.times import with_zone
from fairway.wire.messages import JobView, Reschedule
from fairway.wire.run_logs import LogLine

R = TypeVar("R", covariant=True)
Result = TypeVar("Result")
T = TypeVar("T")

WAIT_SECONDS_MAX = 30.0  # of one question; longer waits ask again
REPLY_SECONDS = 1.0  # past a time-out, for the reply that is on its way
PAUSE_SECONDS = 1.0  # after a server said for as long as the client's patience: not now


class Handle(Generic[R]):
    """One job; `R` is what its handler returns, its result that without Snooze and Cancel."""

    def __init__(
        self, backend: Backend, job_id: str, decode: Callable[[bytes], Any] = msgspec.json.decode
    ) -> None:
        self.id = job_id
        self._backend = backend
        self._decode = decode

    @classmethod
    def from_id(cls, app: HasDoor, job_id: str) -> Handle[Any]:
        """A handle without the result's type; `job.handle(id)` knows it."""
        return Handle(app.door(), job_id)

    async def aresult(
        self: Handle[Result | Snooze | Cancel], timeout: Duration | None = None
    ) -> Result:
        """The result, when there is one; JobEnded or StillRunning when there is none."""
        seconds = None if timeout is None else seconds_of(timeout)
        view, text = await self._within(seconds, self._result_by)
        if view.state != "succeeded":
            raise ended_without_result(view)
        try:
            result: Result = self._decode(text)
        except NothingKept:
            raise ended_without_result(view) from None
        return result

    def result(self: Handle[Result | Snooze | Cancel], timeout: Duration | None = None) -> Result:
        return blocking_run(self.aresult(timeout))

    async def astatus(self) -> JobStatus:
        """The job as it is now, in plain values."""
        return status_of(await self._backend.view(self.id))

    def status(self) -> JobStatus:
        return blocking_run(self.astatus())

    async def acancel(self, *, children: bool = False) -> JobStatus:
        """A job that waits is cancelled, one that runs is asked to stop.

        With `children`, also what its run started, and what came of that.

        A job that has ended is no Conflict then: only what came of it is cancelled.
        """
        return status_of(await self._backend.cancel(self.id, children=children))

    def cancel(self, *, children: bool = False) -> JobStatus:
        return blocking_run(self.acancel(children=children))

    async def achildren(self) -> list[JobStatus]:
        """The jobs that its run started, the newest first."""
        return [status_of(one) for one in await self._backend.children(self.id)]

    def children(self) -> list[JobStatus]:
        return blocking_run(self.achildren())

    async def areschedule(
        self, *, delay: Duration | None = None, at: datetime | None = None, exact: bool = False
    ) -> JobStatus:
        """Another time, while the job is scheduled; Conflict when it is not any more."""
        if (delay is None) == (at is None):
            raise ValueError("give either delay= or at=")
        wanted = Reschedule(
            delay_seconds=None if delay is None else seconds_of(delay),
            execute_at=None if at is None else with_zone(at, "at"),
            exact=exact,
        )
        return status_of(await self._backend.reschedule(self.id, wanted))

    def reschedule(
        self, *, delay: Duration | None = None, at: datetime | None = None, exact: bool = False
    ) -> JobStatus:
        return blocking_run(self.areschedule(delay=delay, at=at, exact=exact))

    async def areplay(self) -> JobStatus:
        """Run a job that is dead once more: the same job, with fresh counters."""
        return status_of(await self._backend.replay(self.id))

    def replay(self) -> JobStatus:
        return blocking_run(self.areplay())

    def aevents(self) -> AsyncIterator[Event]:
        """What happens to the job, until it has ended."""
        return self._backend.events(self.id)

    def events(self) -> Iterator[Event]:
        from fairway.sdk.client.blocking import iterate

        return iterate(self.aevents())

    def alogs(self, attempt: int | None = None, *, follow: bool = False) -> AsyncIterator[LogLine]:
        """What the job said, by `ctx.log` and `logging`; with `follow`, until it has ended."""
        return self._backend.logs(self.id, attempt, follow=follow)

    def logs(self, attempt: int | None = None, *, follow: bool = False) -> Iterator[LogLine]:
        from fairway.sdk.client.blocking import iterate

        return iterate(self.alogs(attempt, follow=follow))

    async def _within(
        self, timeout_seconds: float | None, ask: Callable[[_Patience], Awaitable[T]]
    ) -> T:
        """What it answers; StillRunning when that takes longer."""
        patience = _Patience(timeout_seconds)
        if timeout_seconds is None:
            return await ask(patience)
        try:
            async with asyncio.timeout(timeout_seconds + REPLY_SECONDS) as limit:
                return await ask(patience)
        except TimeoutError:
            if not limit.expired():
                raise
            raise patience.over(self.id) from patience.last_error

    async def _result_by(self, patience: _Patience) -> tuple[JobView, bytes]:
        """How the job ended, and its result as text."""
        view = await self._ended_by(patience)
        if view.state != "succeeded" or view.result_bytes is None:
            return view, view.result if view.result is not None else b"null"
        while True:  # too large to come with the view
            try:
                return view, await self._backend.result(self.id)
            except (LimitReached, Unavailable) as error:
                await self._pause(patience, error)

    async def _ended_by(self, patience: _Patience) -> JobView:
        """A server that is busy or away now may be back before the time is over."""
        while True:
            try:
                patience.view = view = await self._backend.view(
                    self.id, wait_seconds=min(patience.left_seconds, WAIT_SECONDS_MAX)
                )
            except (LimitReached, Unavailable) as error:
                await self._pause(patience, error)
                continue
            if BY_LABEL[view.state].is_final:
                return view
            if patience.left_seconds <= 0:
                raise patience.over(self.id) from patience.last_error

    async def _pause(self, patience: _Patience, error: FairwayError) -> None:
        """Until it is asked again. Without a time-out of its own a wait goes on as long as somebody
        answers "not now"; where nobody answers it has no end, and so it ends here."""
        if patience.is_endless and isinstance(error, Unreachable):
            raise error
        patience.last_error = error
        await asyncio.sleep(min(patience.left_seconds, PAUSE_SECONDS))
        if patience.left_seconds <= 0:
            raise patience.over(self.id) from error

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"


class _Patience:
    """How long somebody waits for a result, and what was heard meanwhile."""

    def __init__(self, seconds: float | None) -> None:
        self.is_endless = seconds is None
        self._seconds = seconds
        self._ends_at = inf if seconds is None else time.monotonic() + seconds
        self.view: JobView | None = None
        self.last_error: FairwayError | None = None

    @property
    def left_seconds(self) -> float:
        return max(self._ends_at - time.monotonic(), 0)

    def over(self, job_id: str) -> StillRunning:
        if self.view is not None:
            return StillRunning(
                f"{self.view.type} {job_id} is {self.view.state} after {self._seconds} s"
            )
        cause = "" if self.last_error is None else f": {self.last_error.message}"
        return StillRunning(f"nothing was heard of {job_id} in {self._seconds} s{cause}")


def blocking_run(work: Coroutine[Any, Any, T]) -> T:
    # Imported here: a program that only speaks async should not pay for the thread machinery.
    from fairway.sdk.client.blocking import run

    return run(work)
