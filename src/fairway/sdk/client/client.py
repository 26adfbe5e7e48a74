"""The front door over HTTP: one asynchronous client; `blocking.py` drives it for sync code.

A submission, one job or a batch, always carries an Idempotency-Key, so it can be sent again after
a lost reply and each job is still accepted once. The client translates between values and
endpoints; it decides nothing.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from urllib.parse import quote

import msgspec

from fairway.core.errors import Conflict, FairwayError, InvalidRequest, Unavailable
from fairway.core.lifecycle import BY_LABEL, State
from fairway.sdk.bulk_calls import BulkCalls
from fairway.sdk.client import job_calls
from fairway.sdk.client.backend import Submission
from fairway.sdk.client.batch_calls import BatchCalls
from fairway.sdk.client.billing_calls import BillingCalls
from fairway.sdk.client.blocking import is_driving, run
from fairway.sdk.client.coalescer import Coalescer
from fairway.sdk.client.flow_calls import FlowCalls
from fairway.sdk.client.gathering import JOB_BYTES_MAX
from fairway.sdk.client.job_calls import (
    JSON,
    Asked,
    JobCalls,
    decode_accepted,
)
from fairway.sdk.client.received import decode_children, decode_ends, decode_view
from fairway.sdk.client.shared_waits import SharedWaits
from fairway.sdk.client.ticket import new_key
from fairway.sdk.http.lean_servers import LeanServers
from fairway.sdk.http.proxies import is_proxied
from fairway.sdk.http.settings import ClientSettings
from fairway.sdk.http.sse import Event, EventParser
from fairway.sdk.http.transport import (
    HOME_ELSEWHERE,
    TENANT_MOVING,
    NotNow,
    Question,
    RefusedRepeat,
    Transport,
)
from fairway.sdk.logs.event_log import EventLog
from fairway.sdk.logs.log_reader import follow_lines, read_lines
from fairway.sdk.webhook_calls import WebhookCalls
from fairway.wire.messages import (
    EMPTY_OBJECT,
    JobView,
    Reschedule,
    encode,
)
from fairway.wire.run_logs import LogLine
from fairway.wire.schedules import ScheduleList, ScheduleRequest, ScheduleView
from fairway.wire.storage import UploadMade
from fairway.wire.value_count import has_room

PATIENCE_SECONDS = 15.0
UPLOAD_BYTES = 4 << 20  # payloads larger than this do not go with the request
CHILDREN_PAGE = 200
POLL_SECONDS, POLL_SECONDS_MAX = 0.2, 2.0
NO_STREAM = ("TOO_MANY_STREAMS", HOME_ELSEWHERE)  # then the job is asked for now and then
ROUNDING_SECONDS = 0.05  # so that 5 s, a moment later, are still asked for as 5

_decode_upload = msgspec.json.Decoder(UploadMade).decode
_decode_schedule = msgspec.json.Decoder(ScheduleView).decode
_decode_schedules = msgspec.json.Decoder(ScheduleList).decode


class Client:
    """Talks to one server with one key; safe to share between event loops and threads."""

    def __init__(
        self,
        settings: ClientSettings,
        *,
        user_agent: str = "fairway-sdk",
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._transport = Transport(settings, user_agent, patience_seconds)
        self._patience_seconds = patience_seconds
        self._coalescer = Coalescer(self._transport.addresses, self._calls, patience_seconds)
        self._batches = BatchCalls(self._transport)
        self.flows = FlowCalls(self._transport)
        self.event_log = EventLog(self._transport)
        self.billing = BillingCalls(self._transport)
        self.webhooks = WebhookCalls(self._transport, patience_seconds)
        self.bulk = BulkCalls(self._transport, patience_seconds)
        self._waits = SharedWaits(
            self._transport.addresses, self._asked, decode_ends, patience_seconds
        )
        self._alone = threading.Lock()  # held by the one wait that has a call of its own

    async def submit(self, submission: Submission) -> str:
        """In one call with those of others that are handed in at the same moment."""
        text, key = _shared_text(submission), submission.idempotency_key
        if text is None:
            return await self._submit_alone(submission)
        try:
            return await self._coalescer.submit(text, key, submission.traceparent)
        except InvalidRequest as error:
            return await self._submit_uploaded(submission, error)

    def submit_blocking(self, submission: Submission) -> str:
        """The same for a thread, which waits in it."""
        text, key = _shared_text(submission), submission.idempotency_key
        if text is None or is_driving():
            return run(self._submit_alone(submission))
        try:
            return self._coalescer.submit_blocking(text, key, submission.traceparent)
        except InvalidRequest as error:
            return run(self._submit_uploaded(submission, error))

    def _calls(self) -> JobCalls:
        return JobCalls(self._asked())

    def _asked(self) -> Asked:
        transport = self._transport
        if any(map(is_proxied, transport.addresses.all)):
            return transport
        return LeanServers(transport.addresses, transport.headers, self._patience_seconds)

    async def _submit_alone(self, submission: Submission) -> str:
        if _must_be_uploaded(submission):
            submission = await self._uploaded(submission)
        try:
            return await self._submit(submission)
        except InvalidRequest as error:
            return await self._submit_uploaded(submission, error)

    async def _submit_uploaded(self, submission: Submission, refusal: InvalidRequest) -> str:
        """It was refused: if only for its number of values, there is a place for those."""
        if refusal.code != "TOO_MANY_VALUES" or submission.request.payload_upload:
            raise refusal
        return await self._submit(await self._uploaded(submission))

    async def _submit(self, submission: Submission) -> str:
        key = submission.idempotency_key or new_key()
        headers = job_calls.headers_of(key, submission.traceparent)
        question = job_calls.submission("/v1/jobs", encode(submission.request), headers)
        return decode_accepted(await self._transport.ask(question)).id

    async def submit_many(self, submissions: list[Submission]) -> list[str | FairwayError]:
        """One answer a job, in their order."""
        submissions = [
            await self._uploaded(one) if _must_be_uploaded(one) else one for one in submissions
        ]
        return await self._batches.submit(submissions)

    async def view(self, job_id: str, wait_seconds: float = 0) -> JobView:
        """One that waits alone has a call of its own; others beside it share one."""
        if not wait_seconds:
            return await self._view(job_id, 0)
        began = time.monotonic()
        if not self._alone.acquire(blocking=False):
            view = await self._waits.ended(job_id, wait_seconds)
            if view is not None:
                return view
            left = max(wait_seconds + began - time.monotonic(), 0.0)
            return await self._view_by_itself(job_id, left)
        try:
            return await self._view_by_itself(job_id, wait_seconds)
        finally:
            self._alone.release()

    async def _view_by_itself(self, job_id: str, wait_seconds: float) -> JobView:
        ends_at, left, pause = time.monotonic() + wait_seconds, wait_seconds, POLL_SECONDS
        while True:
            view = await self._view(job_id, max(int(left + ROUNDING_SECONDS), 0))
            left = ends_at - time.monotonic()
            if BY_LABEL[view.state].is_final or left <= 0:
                return view
            # Waits are asked for in whole seconds; a server without room for one more, or a proxy
            # that is tired of waiting, answers before that.
            await asyncio.sleep(min(left, pause))
            left, pause = ends_at - time.monotonic(), min(2 * pause, POLL_SECONDS_MAX)

    async def result(self, job_id: str) -> bytes:
        return await self._transport.ask(Question("GET", f"/v1/jobs/{_in_path(job_id)}/result"))

    async def _uploaded(self, submission: Submission) -> Submission:
        """The same job, its payload put where large ones go."""
        made = _decode_upload(await self._transport.ask(Question("POST", "/v1/uploads")))
        await self._transport.put(made.url, bytes(submission.request.payload))
        request = msgspec.structs.replace(
            submission.request, payload=EMPTY_OBJECT, payload_upload=made.id
        )
        return submission._replace(request=request)

    async def cancel(self, job_id: str, *, children: bool = False) -> JobView:
        """A repeat that finds the job cancelled found what was asked for."""
        path = f"/v1/jobs/{_in_path(job_id)}" + ("?children=true" if children else "")
        question = Question("DELETE", path, tells_repeats=True)
        try:
            return decode_view(await self._transport.ask(question))
        except RefusedRepeat as refused:
            view = await self._view(job_id, 0)
            if view.state == State.CANCELLED.label:
                return view
            raise refused.error from None

    async def children(self, job_id: str) -> list[JobView]:
        found: list[JobView] = []
        cursor: str | None = ""
        while cursor is not None:
            after = f"&cursor={cursor}" if cursor else ""
            path = f"/v1/jobs/{_in_path(job_id)}/children?limit={CHILDREN_PAGE}{after}"
            page = decode_children(await self._transport.ask(Question("GET", path)))
            found += page.jobs
            cursor = page.next_cursor
        return found

    async def replay(self, job_id: str) -> JobView:
        """A repeat that finds no dead letter any more, where one was, found what was asked for.

        Only a look at the job before the first try tells that from a job that never died.
        """
        path = f"/v1/dead-letters/{_in_path(job_id)}/replay"
        was_dead = (await self._view(job_id, 0)).state == State.DEAD.label
        try:
            question = Question("POST", path, b"{}", JSON, tells_repeats=True)
            return decode_view(await self._transport.ask(question))
        except RefusedRepeat as refused:
            view = await self._view(job_id, 0)
            if was_dead and view.state != State.DEAD.label:
                return view
            raise refused.error from None

    async def reschedule(self, job_id: str, wanted: Reschedule) -> JobView:
        question = Question("PATCH", f"/v1/jobs/{_in_path(job_id)}", encode(wanted), JSON)
        return decode_view(await self._transport.ask(question))

    # -- schedules ---------------------------------------------------------------------------

    async def put_schedule(self, name: str, wanted: ScheduleRequest) -> bool:
        """True when it is new."""
        question = Question("PUT", f"/v1/schedules/{_in_path(name)}", encode(wanted), JSON)
        found = _decode_schedule(await self._transport.ask(question))
        return found.created_at == found.updated_at

    async def schedule_names(self, source: str) -> list[str]:
        """Names of the schedules that an app declared."""
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            after = f"&cursor={cursor}" if cursor else ""
            question = Question("GET", f"/v1/schedules?limit=200{after}")
            page = _decode_schedules(await self._transport.ask(question))
            found += [one.name for one in page.schedules if one.source == source]
            cursor = page.next_cursor
        return found

    async def delete_schedule(self, name: str) -> None:
        await self._transport.ask(Question("DELETE", f"/v1/schedules/{_in_path(name)}"))

    async def events(self, job_id: str) -> AsyncIterator[Event]:
        """Resumes after a broken connection where it stopped; ends when the job has ended.
        Where no stream is to be had, it asks now and then: what changed in between is one event."""
        parser, seen = EventParser(), None
        ends_at, tries = self._transport.patience_ends_at(), 0
        while True:
            try:
                async with aclosing(self._stream(job_id, parser)) as stream:
                    async for event in stream:
                        ends_at, tries = self._transport.patience_ends_at(), 0
                        if event.data != seen:
                            yield event
                        if _is_last(event):
                            return
            except (NotNow, Conflict) as error:
                broken = _as_not_now(error)
                if (present := await self._present(job_id)) is None:
                    # Our patience may be shorter than what the server asked for: then none was had.
                    await asyncio.sleep(POLL_SECONDS_MAX)
                    ends_at, tries = self._transport.patience_ends_at(), 0
                    continue
                is_refused = broken.error.code in NO_STREAM
                if is_refused and present.data != seen:
                    seen = present.data
                    yield present
                if _is_last(present):
                    return
                if is_refused:
                    await asyncio.sleep(POLL_SECONDS_MAX)
                    ends_at, tries = self._transport.patience_ends_at(), 0
                    continue
                tries += 1
                ends_at = await self._transport.rest_following(tries, broken, ends_at)

    async def _present(self, job_id: str) -> Event | None:
        """The job as it is, told as a stream would; None: its tenant moves, ask again."""
        question = Question("GET", f"/v1/jobs/{_in_path(job_id)}")
        try:
            data = msgspec.json.decode(await self._transport.ask(question))
        except Unavailable as error:
            if error.code != TENANT_MOVING:
                raise
            return None
        return Event(str(data.get("state")), data)

    def logs(
        self, job_id: str, attempt: int | None = None, *, follow: bool = False
    ) -> AsyncIterator[LogLine]:
        path = f"/v1/jobs/{_in_path(job_id)}/logs"
        return (follow_lines if follow else read_lines)(self._transport, path, attempt)

    async def aclose(self) -> None:
        """Close the connections of the running event loop, and those that all callers share."""
        await self._transport.aclose()
        self._coalescer.close()
        self._waits.close()

    async def _view(self, job_id: str, wait_seconds: int) -> JobView:
        prefer = {"Prefer": f"wait={wait_seconds}"} if wait_seconds else {}
        question = Question(
            "GET", f"/v1/jobs/{_in_path(job_id)}", headers=prefer, wait_seconds=wait_seconds
        )
        return decode_view(await self._transport.ask(question))

    async def _stream(self, job_id: str, parser: EventParser) -> AsyncGenerator[Event, None]:
        """Never ends by itself: a stream that does is one to ask for again."""
        headers = {"Accept": "text/event-stream"}
        if parser.last_id:
            headers["Last-Event-ID"] = parser.last_id
        parser.forget_partial()
        question = Question("GET", f"/v1/jobs/{_in_path(job_id)}/events", headers=headers)
        async with self._transport.stream(question) as response:
            async for chunk in response.aiter_text():
                for event in parser.feed(chunk):
                    yield event
        raise NotNow(FairwayError(f"the events of {job_id} ended before the job did"))


def _as_not_now(error: NotNow | Conflict) -> NotNow:
    """A stream that this region cannot give; whatever else conflicts is for the caller."""
    if isinstance(error, NotNow):
        return error
    if error.code != HOME_ELSEWHERE:
        raise error
    return NotNow(error, is_elsewhere=True)


def _shared_text(submission: Submission) -> bytes | None:
    """The job as it is sent, if it may travel with others: small, and whole."""
    if submission.request.payload_upload is not None:
        return None
    text = encode(submission.request)
    return text if len(text) <= JOB_BYTES_MAX else None


def _must_be_uploaded(submission: Submission) -> bool:
    payload = bytes(submission.request.payload)
    return len(payload) > UPLOAD_BYTES or not has_room(payload)


def _in_path(text: str) -> str:
    """One piece of a path, whatever it is: an id of `../limits` is an id that is not there."""
    return quote(text, safe="")


def _is_last(event: Event) -> bool:
    state = event.data.get("state") if isinstance(event.data, dict) else None
    return state in BY_LABEL and BY_LABEL[state].is_final
