"""`GET /v1/jobs/{id}/events`: every change of a job as server-sent events, until its final state.

An event's id is the job's version, so a client that reconnects with `Last-Event-ID` hears what is
new to it and nothing twice. A change that is gone before anybody looked is not made up afterwards.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import views
from fairway.api.auth import tenant_of
from fairway.api.jobs import job_id
from fairway.api.plain import Receive, Scope, Send, header
from fairway.core.errors import FairwayError
from fairway.core.ids import JobId
from fairway.core.lifecycle import State
from fairway.services.insight import JobSight
from fairway.services.platform import Platform
from fairway.services.waiting import WaitingRoom
from fairway.wire import messages

FOLLOW_SECONDS = 15.0
PING_SECONDS = 15
RETRY_MS = 2000


async def job_events(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    job = job_id(request.path_params["id"])
    sight = await platform.insight.job(tenant.id, job)  # a 404 must come before the stream begins
    seen = header(request.scope, b"last-event-id")
    known = seen.decode("latin-1") if seen else None
    if known == sight.version and _is_final(sight):
        return Response(status_code=204)  # tells an EventSource to stop asking
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    events = _follow(platform, tenant.id, job, known)
    stream = EventSourceResponse(events, ping=PING_SECONDS, headers={"x-accel-buffering": "no"})
    return _Placed(stream, platform.waiting, tenant.id)


class _Placed(Response):
    """A stream that holds one of its tenant's places, from its first byte to its end."""

    def __init__(self, stream: Response, room: WaitingRoom, tenant: int) -> None:
        super().__init__()
        self._stream, self._room, self._tenant = stream, room, tenant

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._room.place("streams", self._tenant):
            await self._stream(scope, receive, send)


async def _follow(
    platform: Platform, tenant: int, job: JobId, known: str | None
) -> AsyncIterator[ServerSentEvent]:
    try:
        while True:
            wait_seconds = FOLLOW_SECONDS if known else 0
            sight = await platform.insight.job_when(
                tenant, job, wait_seconds=wait_seconds, unlike=known
            )
            if sight.version != known:
                known = sight.version
                yield await _event(platform, sight)
            if _is_final(sight) or platform.watchers.is_closed:
                return
    except FairwayError:
        return  # the store is away: the client comes back with the last id it has


async def _event(platform: Platform, sight: JobSight) -> ServerSentEvent:
    view = await views.job_view(sight, platform.directory)
    text = messages.encode(view).decode()
    return ServerSentEvent(text, event=view.state, id=sight.version, retry=RETRY_MS)


def _is_final(sight: JobSight) -> bool:
    return State(sight.record.state).is_final
