"""A handle: one job that was handed in, seen from the caller's side.

It keeps an id and nothing of the job's state: every question is asked anew. A handle can be made
again from the id alone, in another process, at any later time.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from fairway.core.lifecycle import BY_LABEL
from fairway.sdk.durations import Duration, seconds_of
from fairway.sdk.failures import StillRunning, ended_without_result
from fairway.sdk.times import with_zone
from fairway.sdk.vocabulary import Cancel, Snooze
from fairway.wire.messages import Reschedule

if TYPE_CHECKING:
    from fairway.sdk.app import App
    from fairway.sdk.door import Door
    from fairway.sdk.events import Event
    from fairway.wire.messages import JobView

R = TypeVar("R", covariant=True)
Result = TypeVar("Result")
T = TypeVar("T")

WAIT_SECONDS_MAX = 30.0  # of one question; longer waits ask again


class Handle(Generic[R]):
    """One job; `R` is what its handler returns, its result that without Snooze and Cancel."""

    def __init__(
        self, door: Door, job_id: str, decode: Callable[[bytes], Any] = msgspec.json.decode
    ) -> None:
        self.id = job_id
        self._door = door
        self._decode = decode

    @classmethod
    def from_id(cls, app: App, job_id: str) -> Handle[Any]:
        """A handle without the result's type; `job.handle(id)` knows it."""
        return Handle(app.door(), job_id)

    async def aresult(
        self: Handle[Result | Snooze | Cancel], timeout: Duration | None = None
    ) -> Result:
        """The result, when there is one; JobEnded or StillRunning when there is none."""
        view = await self._ended(None if timeout is None else seconds_of(timeout))
        if view.state != "succeeded":
            raise ended_without_result(view)
        text = view.result if view.result is not None else b"null"
        if view.result_bytes is not None:  # too large to come with the view
            text = await self._door.result(self.id)
        result: Result = self._decode(text)
        return result

    def result(self: Handle[Result | Snooze | Cancel], timeout: Duration | None = None) -> Result:
        return blocking_run(self.aresult(timeout))

    async def astatus(self) -> JobView:
        return await self._door.view(self.id)

    def status(self) -> JobView:
        return blocking_run(self.astatus())

    async def acancel(self) -> JobView:
        return await self._door.cancel(self.id)

    def cancel(self) -> JobView:
        return blocking_run(self.acancel())

    async def areschedule(
        self, *, delay: Duration | None = None, at: datetime | None = None, exact: bool = False
    ) -> JobView:
        """Another time, while the job is scheduled; Conflict when it is not any more."""
        if (delay is None) == (at is None):
            raise ValueError("give either delay= or at=")
        wanted = Reschedule(
            delay_seconds=None if delay is None else seconds_of(delay),
            execute_at=None if at is None else with_zone(at, "at"),
            exact=exact,
        )
        return await self._door.reschedule(self.id, wanted)

    def reschedule(
        self, *, delay: Duration | None = None, at: datetime | None = None, exact: bool = False
    ) -> JobView:
        return blocking_run(self.areschedule(delay=delay, at=at, exact=exact))

    async def areplay(self) -> JobView:
        """Run a job that is dead once more: the same job, with fresh counters."""
        return await self._door.replay(self.id)

    def replay(self) -> JobView:
        return blocking_run(self.areplay())

    def aevents(self) -> AsyncIterator[Event]:
        """What happens to the job, until it has ended."""
        return self._door.events(self.id)

    def events(self) -> Iterator[Event]:
        from fairway.sdk.blocking import iterate

        return iterate(self.aevents())

    async def _ended(self, timeout_seconds: float | None) -> JobView:
        ends_at = float("inf") if timeout_seconds is None else time.monotonic() + timeout_seconds
        while True:
            left = ends_at - time.monotonic()
            view = await self._door.view(self.id, wait_seconds=min(max(left, 0), WAIT_SECONDS_MAX))
            if BY_LABEL[view.state].is_final:
                return view
            if time.monotonic() >= ends_at:
                raise StillRunning(
                    f"{view.type} {view.id} is {view.state} after {timeout_seconds} s"
                )

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"


def blocking_run(work: Coroutine[Any, Any, T]) -> T:
    # Imported here: a program that only speaks async should not pay for the thread machinery.
    from fairway.sdk.blocking import run

    return run(work)
