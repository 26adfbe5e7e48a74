"""The front door as the SDK sees it: what can be asked of the platform, whoever answers.

`Client` answers over HTTP; the modes of `fairway.testing` answer in memory. A testing mode is
opened in a context variable, so it holds for the code under test and for nobody else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

from fairway.core.errors import FairwayError
from fairway.sdk.client.flow_door import FlowDoor
from fairway.sdk.handler.codec import Codec
from fairway.sdk.hooks import Hooks
from fairway.sdk.http.sse import Event
from fairway.sdk.key_limits import KeyLimits
from fairway.sdk.unique import UniqueKey
from fairway.wire.messages import JobRequest, JobView, Reschedule
from fairway.wire.run_logs import LogLine
from fairway.wire.schedules import ScheduleRequest


class HasDoor(Protocol):
    """Who knows the way to the platform: an app."""

    name: str
    hooks: Hooks

    def door(self) -> Backend:
        """The testing mode that is open here, else the client."""

    def flow_door(self) -> FlowDoor:
        """Where chains and groups are handed in."""

    def close(self) -> None:
        """Let its connections go, from a thread."""

    async def aclose(self) -> None:
        """Let its connections go, from a task."""


class JobType(Protocol):
    """What is asked of a job type to hand in jobs of it."""

    app: HasDoor
    name: str
    pool: str
    priority: int
    timeout_seconds: float | None
    key_limits: KeyLimits
    unique_key: UniqueKey

    @property
    def codec(self) -> Codec:
        """Its arguments and its result, to JSON and back."""


class Submission(NamedTuple):
    """A job to hand in. Without a key of the caller's, the door makes one up."""

    job: JobType
    request: JobRequest
    idempotency_key: str | None = None
    traceparent: str | None = None  # of the span that is under way where it is handed in


class Backend(Protocol):
    async def submit(self, submission: Submission) -> str:
        """The id of the accepted job."""

    async def submit_many(self, submissions: list[Submission]) -> list[str | FairwayError]:
        """One id, or one reason for refusal, per submission and in their order."""

    async def view(self, job_id: str, wait_seconds: float = 0) -> JobView:
        """The job as it is now, or when it has ended, or after `wait_seconds`."""

    async def result(self, job_id: str) -> bytes:
        """The result of a job that succeeded, as JSON, however large."""

    async def cancel(self, job_id: str, *, children: bool = False) -> JobView:
        """Ask for the job to be stopped; with `children`, for all that came of it, too."""

    async def children(self, job_id: str) -> list[JobView]:
        """The jobs that its success started, the newest first."""

    async def reschedule(self, job_id: str, wanted: Reschedule) -> JobView:
        """Another time for a job that is still scheduled."""

    async def replay(self, job_id: str) -> JobView:
        """Put a dead letter back into the queue, with fresh counters."""

    def events(self, job_id: str) -> AsyncIterator[Event]:
        """What happens to the job, until it has ended."""

    def logs(
        self, job_id: str, attempt: int | None = None, *, follow: bool = False
    ) -> AsyncIterator[LogLine]:
        """What its runs said, until now or until it has ended."""


class TestingBackend(Backend, Protocol):
    """A testing mode; it takes flows and keeps schedules as well."""

    @property
    def flows(self) -> FlowDoor:
        """Where chains and groups are handed in."""

    def keep_schedule(self, name: str, wanted: ScheduleRequest, job: Any) -> bool:
        """From now on its ticks make jobs of this type; True when it is new."""

    def drop_schedules(self, source: str, kept: Collection[str]) -> list[str]:
        """Those of this app that it no longer declares."""


testing_backend: ContextVar[TestingBackend | None] = ContextVar(
    "fairway_testing_door", default=None
)


def submit_blocking(backend: Backend, submission: Submission) -> str:
    """For a thread: by the backend's own way for threads, if it has one."""
    own: Callable[[Submission], str] | None = getattr(backend, "submit_blocking", None)
    if own is not None:
        return own(submission)
    # Imported here: a program that only speaks async should not pay for the thread machinery.
    from fairway.sdk.client.blocking import run

    return run(backend.submit(submission))
