"""`GET /v1/jobs/{id}/events`: every change of a job as server-sent events, until its final state.

An event's id is the job's version, so a client that reconnects with `Last-Event-ID` hears what is
new to it and nothing twice. A change that is gone before anybody looked is not made up afterwards.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api.auth import caller_of
from fairway.api.endpoint import Endpoint, Parameter, Reply
from fairway.api.http.asgi import Send
from fairway.api.http.headers import header
from fairway.api.jobs import views
from fairway.api.jobs.event_stream import MEDIA, RETRY_MS, STILL_HERE, EventStream, send_part
from fairway.api.jobs.jobs import job_id
from fairway.core.errors import FairwayError
from fairway.core.ids import JobId, TenantId
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.runtime.loops import pause
from fairway.services.jobs.lookup import JobSight
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.services.registry.tenants_and_keys import Directory
from fairway.wire import messages

FOLLOW_SECONDS = 15.0  # without news for so long, a line says that we are still here
AT_ONCE = 8  # events of a stream that go out as they come
APART_SECONDS = 0.5  # between those after them: a word of progress reaches every stream of its job
TEXTS_MAX, TEXTS_BYTES_MAX = 64, 4 << 20


@Endpoint(
    "GET /v1/jobs/{id}/events",
    keys=("tenant",),
    parameters=(
        parts.JOB_PATH,
        Parameter(
            "header",
            "Last-Event-ID",
            "The last `id` you have; what you know already is not sent again.",
            parts.VERSION,
        ),
    ),
    replies=(
        Reply(
            200,
            "The stream.",
            example=f'id: 1.0.0.0.0\nevent: queued\ndata: {{"id": "{parts.JOB_ID}", …}}\nretry:'
            f' 2000\n\nid: {parts.VERSION}\nevent: succeeded\ndata: {{"id":'
            f' "{parts.JOB_ID}", …}}\nretry: 2000\n',
            schema={},
            media="text/event-stream",
        ),
        Reply(204, "The job is final and you have its last event: stop asking."),
    ),
    problems=("NOT_FOUND", "TOO_MANY_STREAMS"),
)
async def follow_job(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Follow a job

    Server-sent events: one for the job as it stands, then one for every change, until its final
    state ends the stream. `event` is the state, `id` the version, `data` the whole job. A short
    run may be over before `running` could be shown.
    """
    job = job_id(request.path_params["id"])
    # a 404 must come before the stream begins
    sight = await platform.job_lookup.job(tenant.id, job)
    seen = header(request.scope, b"last-event-id")
    known = seen.decode("latin-1") if seen else None
    if known == sight.version and _is_final(sight):
        return Response(status_code=204)  # tells an EventSource to stop asking
    if request.method == "HEAD":
        return Response(media_type=MEDIA)
    texts = request.app.state.event_texts
    return JobEvents(platform, texts, caller_of(request), sight, known)


class Texts:
    """The events told last. Hundreds of streams may follow one job: it is put in words once."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._texts: dict[tuple[TenantId, JobId, str], bytes] = {}
        self._bytes = 0

    async def event(self, tenant: TenantId, sight: JobSight) -> bytes:
        key = (tenant, sight.record.id, sight.version)
        text = self._texts.get(key)
        if text is None:
            text = await _event(self._directory, sight)
            self._bytes += len(text) - len(self._texts.pop(key, b""))
            self._texts[key] = text
            while len(self._texts) > TEXTS_MAX or self._bytes > TEXTS_BYTES_MAX:
                self._bytes -= len(self._texts.pop(next(iter(self._texts))))
        return text


class JobEvents(EventStream):
    def __init__(
        self,
        platform: Platform,
        texts: Texts,
        asked_by: Principal,
        sight: JobSight,
        known: str | None,
    ) -> None:
        super().__init__(platform, asked_by)
        self._texts = texts
        self._sight, self._known = sight, known

    async def tell(self, send: Send) -> None:
        sight, known, told = self._sight, self._known, 0
        tenant = sight.record.tenant
        look, event = self._platform.job_waits.job_when, self._texts.event
        try:
            while True:
                is_news = sight.version != known
                known, told = sight.version, told + is_news
                text = await event(tenant, sight) if is_news else STILL_HERE
                await send_part(send, text)
                if _is_final(sight) or self._platform.watchers.is_closed:
                    return
                if told > AT_ONCE:
                    await pause(APART_SECONDS)
                sight = await look(
                    tenant, sight.record.id, wait_seconds=FOLLOW_SECONDS, unlike=known
                )
        except FairwayError:
            return  # the store is away: the client comes back with the last id it has


async def _event(directory: Directory, sight: JobSight) -> bytes:
    view = await views.job_view(sight, directory)
    lines = f"id: {sight.version}\nevent: {view.state}\nretry: {RETRY_MS}\ndata: "
    return lines.encode() + messages.encode(view) + b"\n\n"  # JSON without a line break


def _is_final(sight: JobSight) -> bool:
    return State(sight.record.state).is_final
