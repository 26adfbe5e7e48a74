"""Jobs after submission: read one, list, cancel, follow. Always within the key's tenant."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import views
from fairway.api.auth import tenant_of
from fairway.api.headers import etag, known_version, wait_seconds
from fairway.api.plain import JSON, Header, Receive, Scope, Send, header, send_bytes
from fairway.api.relay import Relay
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.ids import LOWEST_JOB_ID, JobId, lowest_id_at, parse_job_id, shard_of
from fairway.core.job import JobFilter
from fairway.core.lifecycle import BY_LABEL, State
from fairway.core.pools import BY_NAME
from fairway.services.insight import JobSight
from fairway.services.platform import Platform
from fairway.wire import messages

PAGE_DEFAULT = 50
PAGE_MAX = 200
HIGHEST_JOB_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
FILTERS = ("state", "type", "pool", "since", "until", "limit", "cursor")


def job_id(text: str) -> JobId:
    job = parse_job_id(text)
    if job is None:
        raise NotFound(f"There is no job {text[:64]}.")
    return job


class OneJob:
    """GET, HEAD and DELETE of `/v1/jobs/{id}`, as a raw ASGI callable: polling must be cheap."""

    def __init__(self, platform: Platform, relay: Relay) -> None:
        self._platform = platform
        self._relay = relay

    async def __call__(self, scope: Scope, receive: Receive, send: Send, text: str) -> None:
        tenant = await tenant_of(scope, self._platform.directory)
        job = job_id(text)
        if scope["method"] == "DELETE":
            await self._cancel(scope, send, tenant.id, job)
        else:
            await self._read(scope, send, tenant.id, job)

    async def _read(self, scope: Scope, send: Send, tenant: int, job: JobId) -> None:
        wait, known = wait_seconds(scope), known_version(scope)
        insight = self._platform.insight
        if wait:
            sight = await insight.job_when(tenant, job, wait_seconds=wait, unlike=known)
        else:
            sight = await insight.job(tenant, job)
        headers = [JSON, (b"etag", etag(sight.version)), (b"cache-control", b"no-cache")]
        if wait:
            headers.append((b"preference-applied", f"wait={wait}".encode()))
        if known == sight.version:
            await send_bytes(send, 304, b"", headers[1:])
        else:
            await self._show(scope, send, sight, headers)

    async def _show(self, scope: Scope, send: Send, sight: JobSight, headers: list[Header]) -> None:
        body = messages.encode(await views.job_view(sight, self._platform.directory))
        if scope["method"] == "HEAD":
            headers.append((b"content-length", str(len(body)).encode()))
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
        else:
            await send_bytes(send, 200, body, headers)

    async def _cancel(self, scope: Scope, send: Send, tenant: int, job: JobId) -> None:
        if shard_of(job) not in self._platform.dispatcher.terms:
            await self._relay.pass_on(scope, b"", send, shard=shard_of(job))
            return
        sight = await self._platform.control.cancel(tenant, job)
        view = await views.job_view(sight, self._platform.directory)
        status = 200 if State(sight.record.state).is_final else 202
        await send_bytes(send, status, messages.encode(view))


# -- lists -------------------------------------------------------------------------------------


async def list_jobs(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    wanted = _filter(request, platform)
    if wanted is None:  # a type that no job ever had
        return Response(messages.encode(messages.JobList(jobs=[])), media_type="application/json")
    sights = await platform.insight.jobs(tenant.id, wanted._replace(limit=wanted.limit + 1))
    page = sights[: wanted.limit]
    next_cursor = _cursor(page[-1].record.id) if len(sights) > wanted.limit else None
    jobs = [await views.job_view(sight, platform.directory, whole=False) for sight in page]
    headers = {}
    if next_cursor:
        target = request.url.include_query_params(cursor=next_cursor)
        headers["link"] = f'<{target.path}?{target.query}>; rel="next"'
    body = messages.encode(messages.JobList(jobs=jobs, next_cursor=next_cursor))
    return Response(body, media_type="application/json", headers=headers)


def _filter(request: Request, platform: Platform) -> JobFilter | None:
    query = request.query_params
    for name in query:
        if name not in FILTERS:
            raise InvalidRequest(
                f"There is no filter {name!r}; there are {', '.join(FILTERS)}.", field=name
            )
    type_name = query.get("type")
    type_id = platform.directory.type_ids.get(type_name) if type_name else None
    if type_name and type_id is None:
        return None
    until = _moment(query.get("until"), "until", HIGHEST_JOB_ID)
    cursor = query.get("cursor")
    return JobFilter(
        before=min(until, _uncursor(cursor)) if cursor else until,
        since=_moment(query.get("since"), "since", LOWEST_JOB_ID),
        states=_states(query.get("state")),
        type=type_id,
        pool=_pool(query.get("pool")),
        limit=_limit(query.get("limit")),
    )


def _states(text: str | None) -> list[int] | None:
    if text is None:
        return None
    unknown = [name for name in text.split(",") if name not in BY_LABEL]
    if unknown:
        raise InvalidRequest(
            f"There is no state {unknown[0]!r}; there are {', '.join(BY_LABEL)}.", field="state"
        )
    return [BY_LABEL[name].value for name in text.split(",")]


def _pool(name: str | None) -> int | None:
    if name is None:
        return None
    if name not in BY_NAME:
        raise InvalidRequest(
            f"There is no pool {name!r}; there are {', '.join(BY_NAME)}.",
            code="UNKNOWN_POOL",
            field="pool",
        )
    return BY_NAME[name].number


def _limit(text: str | None) -> int:
    if text is None:
        return PAGE_DEFAULT
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= PAGE_MAX:
        raise InvalidRequest(f"limit is a number from 1 to {PAGE_MAX}.", field="limit")
    return int(text)


def _moment(text: str | None, field: str, default: str) -> str:
    """A date and time as a bound on ids."""
    if text is None:
        return default
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))
        if moment.tzinfo is None:
            raise ValueError
        return lowest_id_at(max(0, int(moment.timestamp() * 1000)))
    except (ValueError, OverflowError):
        raise InvalidRequest(
            f"{field} is a time with its zone, such as 2026-01-31T12:00:00Z.", field=field
        ) from None


def _cursor(last: str) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(last.replace("-", ""))).decode().rstrip("=")


def _uncursor(text: str) -> str:
    """A cursor is only a place in the caller's own list: a forged one can show nothing more."""
    try:
        digits = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).hex()
    except (binascii.Error, ValueError):
        digits = ""
    if len(digits) != 32:
        raise InvalidRequest(
            "The cursor is not one of ours.", code="INVALID_CURSOR", field="cursor"
        )
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


# -- events ------------------------------------------------------------------------------------

FOLLOW_SECONDS = 15.0


async def job_events(request: Request) -> Response:
    """Every change of a job as server-sent events; ends with its final state."""
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    job = job_id(request.path_params["id"])
    await platform.insight.job(tenant.id, job)  # a 404 must come before the stream begins
    seen = header(request.scope, b"last-event-id")
    known = seen.decode("latin-1") if seen else None
    events = _follow(platform, tenant.id, job, known)
    return EventSourceResponse(events, ping=15, headers={"x-accel-buffering": "no"})


async def _follow(
    platform: Platform, tenant: int, job: JobId, known: str | None
) -> AsyncIterator[ServerSentEvent | dict[str, Any]]:
    while True:
        sight = await platform.insight.job_when(
            tenant, job, wait_seconds=FOLLOW_SECONDS if known else 0, unlike=known
        )
        if sight.version != known:
            known = sight.version
            view = await views.job_view(sight, platform.directory)
            yield ServerSentEvent(
                messages.encode(view).decode(), event=view.state, id=known, retry=2000
            )
        if State(sight.record.state).is_final:
            return
