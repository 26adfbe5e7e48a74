"""`GET /v1/events/stream`: the event log as server-sent events, from a position on, without end.

An event's id is its position, and a line says so, too, when a filter let nothing through for a
while: who comes back with `Last-Event-ID` hears all that came after it, and nothing twice. Of a
tenant in several shards it is a place in the logs of all of them.
"""

from __future__ import annotations

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import filters
from fairway.api.auth import caller_of
from fairway.api.endpoint import Endpoint, Parameter, Reply, query
from fairway.api.events.event_log import (
    AFTER,
    EVENT_FILTERS,
    filter_of,
    logs_of,
    places_of,
    refuse_beyond,
)
from fairway.api.http.asgi import Send
from fairway.api.http.headers import header
from fairway.api.jobs.event_stream import MEDIA, RETRY_MS, EventStream, send_part
from fairway.core.errors import FairwayError
from fairway.core.events.event_filter import EventFilter
from fairway.core.events.event_gap import EventGap, LogItem
from fairway.core.events.log_places import Places, text_of
from fairway.core.tenant import Tenant
from fairway.runtime.loops import WorkInParts
from fairway.services.events.part_logs import ITEMS_AT_A_STRETCH, LogFollower, PartLogs
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal

PING_SECONDS = 15.0

PARAMETERS = (
    query(
        "after",
        "The position after which to begin; 0 for all that is kept. Without it: from now on.",
        "4711",
        schema=AFTER,
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

    With several shards an event tells its `part` and a `cursor`, which is its `id`: events of one
    job come in their order, those of different shards about in order of time.
    """
    given = request.query_params
    filters.check_names(given, PARAMETERS)
    wanted = filter_of(given)
    seen = header(request.scope, b"last-event-id")
    begin = seen.decode("latin-1") if seen else given.get("after")
    logs = logs_of(request.scope, platform, tenant)
    after = None if begin is None else places_of(begin, logs.count)
    if request.method == "HEAD":
        return Response(media_type=MEDIA)
    places = await begin_at(logs, after)
    return EventLogStream(platform, caller_of(request), logs, places, wanted)


async def begin_at(logs: PartLogs, after: Places | None) -> Places:
    """The places to begin after; refuses such as there are not."""
    with logs.follow() as follower:
        heads = await follower.heads(after or (0,) * logs.count)
    if after is None:
        return heads
    refuse_beyond(after, heads)
    return after


class EventLogStream(EventStream):
    def __init__(
        self,
        platform: Platform,
        asked_by: Principal,
        logs: PartLogs,
        after: Places,
        wanted: EventFilter,
    ) -> None:
        super().__init__(platform, asked_by)
        self._logs = logs
        self._after, self._wanted = after, wanted
        self._now = asyncio.get_running_loop().time

    async def tell(self, send: Send) -> None:
        try:
            with self._logs.follow() as follower:
                await send_part(send, b"retry: %d\n%s\n" % (RETRY_MS, _id(self._after)))
                await self._follow(send, follower)
        except FairwayError:
            return  # the store is away: the client comes back with the last id it has

    async def _follow(self, send: Send, follower: LogFollower) -> None:
        said_at = self._now()
        while not follower.is_closed:
            text, count = await self._next(follower)
            if text or self._now() - said_at >= PING_SECONDS:
                await send_part(send, text or b": ping\n%s\n" % _id(self._after))
                said_at = self._now()
            if count:
                await follower.rest(count)
            else:
                await follower.until_news(self._after, said_at + PING_SECONDS - self._now())

    async def _next(self, follower: LogFollower) -> tuple[bytes, int]:
        """What is to be said of the next events, and how many were looked at for it."""
        items, count = await follower.following(self._after)
        texts, work = list[bytes](), WorkInParts()
        for number, (after, item) in enumerate(items, 1):
            if isinstance(item, EventGap) or self._wanted.matches(item):
                texts.append(_text(after, item))
            if number % ITEMS_AT_A_STRETCH == 0:
                await work.let_others()
        if items:
            self._after = items[-1][0]
        return b"".join(texts), count


def _text(after: Places, item: LogItem) -> bytes:
    if isinstance(item, EventGap):
        return b"%sevent: gap\ndata: %s\n\n" % (_id(after), gap_text(item))
    head = b"%sevent: %s\ndata: " % (_id(after), item.kind.encode())
    return head + msgspec.json.encode(item) + b"\n\n"  # JSON without a line break


def gap_text(gap: EventGap) -> bytes:
    told = {"from": gap.first, "to": gap.last, "part": gap.part, "cursor": gap.cursor}
    return msgspec.json.encode({name: said for name, said in told.items() if said is not None})


def _id(after: Places) -> bytes:
    return b"id: %s\n" % text_of(after).encode()
