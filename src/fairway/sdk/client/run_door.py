"""The front door as a running handler sees it: what it hands in goes through its own run.

So it belongs to the tenant of the running job, whatever key the process has, and it is there
exactly if the run's success is. Questions about other jobs go on to the door below.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from fairway.core.errors import Conflict, FairwayError
from fairway.core.run.follow_up_ids import FOLLOW_UP_PAYLOAD_BYTES_MAX
from fairway.core.unique import NOT_IN_A_RUN
from fairway.sdk.client.backend import Backend, Submission
from fairway.sdk.handler.codec import InvalidArguments
from fairway.sdk.handler.follow_ups import RunFollowUps
from fairway.sdk.http.sse import Event
from fairway.wire.messages import JobView, Reschedule, encode
from fairway.wire.payload import check_carefully, is_plain
from fairway.wire.run_logs import LogLine


class NotStarted(Conflict):
    """This run starts the job when it succeeds; until then there is nothing to ask of it."""

    code = "NOT_STARTED"


class RunDoor:
    def __init__(self, follow_ups: RunFollowUps, below: Callable[[], Backend]) -> None:
        self._follow_ups = follow_ups
        self._below = below

    async def submit(self, submission: Submission) -> str:
        return self.submit_blocking(submission)

    def submit_blocking(self, submission: Submission) -> str:
        """It waits for nobody, so it is the same for a thread."""
        return self._follow_ups.add([(text_of(submission), submission)])[0]

    async def submit_many(self, submissions: list[Submission]) -> list[str | FairwayError]:
        return [*self._follow_ups.add([(text_of(one), one) for one in submissions])]

    async def view(self, job_id: str, wait_seconds: float = 0) -> JobView:
        return await self._door_of(job_id).view(job_id, wait_seconds)

    async def result(self, job_id: str) -> bytes:
        return await self._door_of(job_id).result(job_id)

    async def cancel(self, job_id: str, *, children: bool = False) -> JobView:
        return await self._door_of(job_id).cancel(job_id, children=children)

    async def children(self, job_id: str) -> list[JobView]:
        return await self._door_of(job_id).children(job_id)

    async def reschedule(self, job_id: str, wanted: Reschedule) -> JobView:
        return await self._door_of(job_id).reschedule(job_id, wanted)

    async def replay(self, job_id: str) -> JobView:
        return await self._door_of(job_id).replay(job_id)

    def events(self, job_id: str) -> AsyncIterator[Event]:
        return self._door_of(job_id).events(job_id)

    def logs(
        self, job_id: str, attempt: int | None = None, *, follow: bool = False
    ) -> AsyncIterator[LogLine]:
        return self._door_of(job_id).logs(job_id, attempt, follow=follow)

    def _door_of(self, job_id: str) -> Backend:
        if job_id in self._follow_ups:
            raise NotStarted(
                f"{job_id} starts when this run succeeds, so there is nothing to ask of it yet, and"
                " waiting for it here would never end. Let it, or a job that it starts, go on with"
                " its result."
            )
        return self._below()


def text_of(submission: Submission) -> bytes:
    """As it travels with the report; what the platform would refuse is told to the handler."""
    request, name = submission.request, submission.request.type
    if submission.idempotency_key is not None:
        raise ValueError(
            f"{name}: an idempotency_key is not taken inside a run: what a run starts is there once"
            " if the run succeeds, and not at all otherwise"
        )
    if request.unique is not None:
        raise ValueError(f"{name}: {NOT_IN_A_RUN}")
    payload, text = bytes(request.payload), encode(request)
    if len(payload) > FOLLOW_UP_PAYLOAD_BYTES_MAX:
        raise InvalidArguments(
            f"{name}: the arguments have {len(payload)} bytes; inside a run at most"
            f" {FOLLOW_UP_PAYLOAD_BYTES_MAX} are taken: keep large values elsewhere, and pass where"
        )
    if not is_plain(text):
        check_carefully(text)
    return text
