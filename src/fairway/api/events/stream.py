"""`GET /v1/events/stream`: the event log as server-sent events, from a position on, without end.

An event's id is its position, and a line says so, too, when a filter let nothing through for a
while: who comes back with `Last-Event-ID` hears all that came after it, and nothing twice.
"""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.auth import caller_of
from fairway.api.endpoint import Endpoint, Parameter, Reply, query
from fairway.api.events.event_log import EVENT_FILTERS, beyond, filter_of, position_of
from fairway.api.http.asgi import Send
from fairway.api.http.headers import header
from fairway.api.jobs.event_stream import MEDIA, RETRY_MS, EventStream, send_part
from fairway.core.errors import FairwayError
from fairway.core.events.event import Event
from fairway.core.events.event_filter import EventFilter
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.services.events.event_tails import Follower
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal

PING_SECONDS = 15.0

PARAMETERS = (
    query(
        "after",
        "The position after which to begin; 0 for all that is kept. Without it: from now on.",
        "4711",
        schema={"type": "integer", "minimum": 0},
    ),
    *(one for one in EVENT_FILTERS if one.name in ("kind", "type", "job")),
)


@Endpoint(
    "GET /v1/events/stream",
    keys=("tenant",),
    parameters=(
        *PARAMETERS,
        Parameter(
            "header",
            "Last-Event-ID",
            "The last `id` you have; it goes before `after`. A browser sends it by itself.",
            "4711",
        ),
    ),
    reply=Reply(
        200,
        "The stream.",
        example='retry: 2000\nid: 4711\n\nid: 4712\nevent: job.succeeded\ndata: {"position": 4712,'
        ' "kind": "job.succeeded", …}\n\nevent: gap\nid: 4890\ndata: {"from": 4713, "to": 4890}\n',
        schema={},
        media=MEDIA,
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", "TOO_MANY_STREAMS", "OVERLOADED"),
)
async def follow_events(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Follow the event log

    Server-sent events, in order and without end: `event` is the kind, `id` the position, `data`
    the event. Events that were already deleted when you came for them are told as one event named
    `gap`, whose `from` and `to` are the first and the last position that is missing.
    """
    given = request.query_params
    filters.check_names(given, PARAMETERS)
    wanted = filter_of(given)
    seen = header(request.scope, b"last-event-id")
    begin = seen.decode("latin-1") if seen else given.get("after")
    after = None if begin is None else position_of(begin)
    if request.method == "HEAD":
        return Response(media_type=MEDIA)
    position = await begin_at(platform, tenant.id, after)
    return EventLogStream(platform, caller_of(request), tenant.id, position, wanted)


async def begin_at(platform: Platform, tenant: TenantId, after: int | None) -> int:
    """The position to begin after; refuses one that there is not."""
    with platform.events.tails.follow(tenant) as follower:
        head = await follower.head(after or 0)
    if after is None:
        return head
    if after > head:
        raise beyond(after, head)
    return after


class EventLogStream(EventStream):
    def __init__(
        self,
        platform: Platform,
        asked_by: Principal,
        tenant: TenantId,
        after: int,
        wanted: EventFilter,
    ) -> None:
        super().__init__(platform, asked_by)
        self._tenant = tenant
        self._tails = platform.events.tails
        self._after, self._wanted = after, wanted
        self._now = asyncio.get_running_loop().time

    async def tell(self, send: Send) -> None:
        try:
            with self._tails.follow(self._tenant) as follower:
                await send_part(send, b"retry: %d\nid: %d\n\n" % (RETRY_MS, self._after))
                await self._follow(send, follower)
        except FairwayError:
            return  # the store is away: the client comes back with the last id it has

    async def _follow(self, send: Send, follower: Follower) -> None:
        said_at = self._now()
        while not follower.is_closed:
            text, count = await self._next(follower)
            if text or self._now() - said_at >= PING_SECONDS:
                await send_part(send, text or b": ping\nid: %d\n\n" % self._after)
                said_at = self._now()
            if count:
                await follower.rest(count)
            else:
                await follower.until_news(self._after, said_at + PING_SECONDS - self._now())

    async def _next(self, follower: Follower) -> tuple[bytes, int]:
        """What is to be said of the next events, and how many were looked at for it."""
        page = await follower.page(self._after)
        parts = []
        if page.trimmed_to > self._after:
            parts.append(_gap(self._after + 1, page.trimmed_to))
            self._after = page.trimmed_to
        parts += [_event(one) for one in page.events if self._wanted.matches(one)]
        if page.events:
            self._after = page.events[-1].position
        return b"".join(parts), len(page.events)


def _event(event: Event) -> bytes:
    head = f"id: {event.position}\nevent: {event.kind}\ndata: "
    return head.encode() + msgspec.json.encode(event) + b"\n\n"  # JSON without a line break


def _gap(first: int, last: int) -> bytes:
    return b'id: %d\nevent: gap\ndata: {"from":%d,"to":%d}\n\n' % (last, first, last)
