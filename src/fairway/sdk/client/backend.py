"""The front door as the SDK sees it: what can be asked of the platform, whoever answers.

`Client` answers over HTTP; the modes of `fairway.testing` answer in memory. A testing mode is
opened in a context variable, so it holds for the code under test and for nobody else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from fairway.core.errors import FairwayError
from fairway.sdk.client.sse import Event
from fairway.sdk.handler.codec import Codec
from fairway.sdk.key_limits import KeyLimits
from fairway.sdk.unique import UniqueKey
from fairway.wire.messages import JobRequest, JobView, Reschedule


class HasDoor(Protocol):
    """Who knows the way to the platform: an app."""

    name: str

    def door(self) -> Backend:
        """The testing mode that is open here, else the client."""


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


class Backend(Protocol):
    async def submit(self, submission: Submission) -> str:
        """The id of the accepted job."""

    async def submit_many(self, submissions: list[Submission]) -> list[str | FairwayError]:
        """One id, or one reason for refusal, per submission and in their order."""

    async def view(self, job_id: str, wait_seconds: float = 0) -> JobView:
        """The job as it is now, or when it has ended, or after `wait_seconds`."""

    async def result(self, job_id: str) -> bytes:
        """The result of a job that succeeded, as JSON, however large."""

    async def cancel(self, job_id: str) -> JobView:
        """Ask for the job to be stopped."""

    async def reschedule(self, job_id: str, wanted: Reschedule) -> JobView:
        """Another time for a job that is still scheduled."""

    async def replay(self, job_id: str) -> JobView:
        """Put a dead letter back into the queue, with fresh counters."""

    def events(self, job_id: str) -> AsyncIterator[Event]:
        """What happens to the job, until it has ended."""


testing_backend: ContextVar[Backend | None] = ContextVar("fairway_testing_door", default=None)
