"""`GET /v1/jobs/{id}/logs`: what a job's runs said, page by page, or live as server-sent events.

A line's place is its run's epoch and its number, so a stream that breaks goes on where it was. It
ends a moment after its job: the last lines come beside the word of the end, not before it.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.auth import caller_of
from fairway.api.endpoint import Endpoint, Parameter, Reply, query
from fairway.api.http.asgi import Send
from fairway.api.http.decoding import json_reply
from fairway.api.http.headers import header
from fairway.api.jobs.event_stream import MEDIA, RETRY_MS, STILL_HERE, EventStream, send_part
from fairway.api.jobs.jobs import job_id
from fairway.core.errors import FairwayError, InvalidRequest
from fairway.core.ids import NO_EPOCH, Epoch, JobId, TenantId
from fairway.core.lifecycle import State
from fairway.core.run.log_chunk import FoundChunk, LogPlace
from fairway.core.tenant import Tenant
from fairway.runtime.loops import pause
from fairway.services.jobs.job_logs import CHUNKS_AT_ONCE
from fairway.services.platform import Platform
from fairway.services.registry.principal import Principal
from fairway.wire import run_logs as wire

BEGINNING = LogPlace(NO_EPOCH, 0)
LINES_DEFAULT, LINES_MAX = 200, 1000
APART_SECONDS = 0.25
LOOK_SECONDS = 2.0  # lines that came by another server are found so late
STILL_HERE_LOOKS = 7  # without news, a line says that we are still here
LAST_WORDS_SECONDS = 1.0  # lines may come so long after the word that their job has ended

_decode_lines = msgspec.json.Decoder(list[wire.SaidLine]).decode

PARAMETERS = (
    query("attempt", "Only what this try of the job said.", "2", schema={"type": "integer"}),
    query(
        "limit",
        f"Lines of a page, up to {LINES_MAX}.",
        "200",
        schema={"type": "integer", "minimum": 1, "maximum": LINES_MAX},
    ),
    query("cursor", "`next_cursor` of the page before. Opaque.", "50331649.200"),
)


@Endpoint(
    "GET /v1/jobs/{id}/logs",
    keys=("tenant",),
    parameters=(
        parts.JOB_PATH,
        *PARAMETERS,
        Parameter("header", "Last-Event-ID", "Of a stream: the last `id` you have.", "50331649.7"),
    ),
    replies=(
        Reply(
            200,
            "A page; or, with `Accept: text/event-stream`, a stream of such lines.",
            wire.LogPage,
            {
                "lines": [
                    {
                        "attempt": 1,
                        "at": "2026-01-31T12:00:00.130Z",
                        "level": "info",
                        "text": "sent 3 of 5",
                        "dropped": 0,
                    }
                ],
                "next_cursor": None,
            },
        ),
    ),
    problems=("NOT_FOUND", "INVALID_REQUEST", "INVALID_CURSOR", "TOO_MANY_STREAMS", *parts.QUICK),
)
async def job_logs(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """Read what a job said

    The lines of `ctx.log` and `logging`, oldest first, run by run. So many are kept of a run; a
    line with `dropped` marks where some were left out. Follow `next_cursor` until it is null.

    With `Accept: text/event-stream` the lines come as they are said, each as an event `line`; the
    event `end` says that the job has ended and no more will come.
    """
    job = job_id(request.path_params["id"])
    wanted = request.query_params
    filters.check_names(wanted, PARAMETERS)
    attempt, limit = _attempt(wanted.get("attempt")), _limit(wanted.get("limit"))
    seen = header(request.scope, b"last-event-id")
    after = _place(wanted.get("cursor") or (seen.decode("latin-1") if seen else None))
    sight = await platform.job_lookup.job(tenant.id, job)
    if MEDIA in request.headers.get("accept", ""):
        if request.method == "HEAD":
            return Response(media_type=MEDIA)
        reading = _Reading(platform, tenant.id, job, attempt)
        return LogStream(platform, caller_of(request), reading, after)
    reading = _Reading(platform, tenant.id, job, attempt)
    await _last_words(platform, tenant.id, sight.record.finished_at)
    lines, last, is_all = await reading.page(after, limit)
    next_cursor = None if is_all or last is None else _text(last)
    return json_reply(wire.LogPage(lines=[line for _, line in lines], next_cursor=next_cursor))


class _Reading:
    """One job's lines, as one caller wants them."""

    def __init__(
        self, platform: Platform, tenant: TenantId, job: JobId, attempt: int | None
    ) -> None:
        self._platform = platform
        self.tenant = tenant
        self.job = job
        self._attempt = attempt

    async def page(
        self, after: LogPlace, limit: int
    ) -> tuple[list[tuple[LogPlace, wire.LogLine]], LogPlace | None, bool]:
        """Lines with their places, the place of the last, and whether that is all by now."""
        chunks = await self._platform.job_logs.chunks(self.tenant, self.job, after, self._attempt)
        found = list(_new_lines(chunks, after))
        shown = found[:limit]
        is_all = len(shown) == len(found) and len(chunks) < CHUNKS_AT_ONCE
        return shown, shown[-1][0] if shown else None, is_all

    async def has_ended(self) -> bool:
        sight = await self._platform.job_lookup.job(self.tenant, self.job)
        return State(sight.record.state).is_final

    async def until_news(self) -> None:
        await self._platform.job_logs.until_news(self.tenant, self.job, LOOK_SECONDS)


def _new_lines(chunks: list[FoundChunk], after: LogPlace) -> list[tuple[LogPlace, wire.LogLine]]:
    """Each line once: what a worker sent again after a lost reply is there twice."""
    found = []
    for chunk in chunks:
        for line in _decode_lines(chunk.lines):
            place = LogPlace(chunk.epoch, line.n)
            if place > after:
                after = place
                found.append((place, _shown(chunk.attempt, line)))
    return found


def _shown(attempt: int, line: wire.SaidLine) -> wire.LogLine:
    return wire.LogLine(
        attempt=attempt,
        at=datetime.fromtimestamp(line.at_ms / 1000, UTC),
        level=logging.getLevelName(line.level).lower(),
        text=line.text,
        dropped=line.dropped,
    )


class LogStream(EventStream):
    def __init__(
        self, platform: Platform, asked_by: Principal, reading: _Reading, after: LogPlace
    ) -> None:
        super().__init__(platform, asked_by)
        self._log_watchers = platform.log_watchers
        self._reading, self._after = reading, after

    async def tell(self, send: Send) -> None:
        quiet_looks, is_over = 0, False
        try:
            while not self._log_watchers.is_closed:
                has_ended = await self._reading.has_ended()  # before the lines: none is missed
                lines, last, is_all = await self._reading.page(self._after, LINES_MAX)
                self._after = last or self._after
                quiet_looks = 0 if lines else quiet_looks + 1
                if lines or quiet_looks % STILL_HERE_LOOKS == 1:
                    events = b"".join(_event(place, line) for place, line in lines)
                    await send_part(send, events or STILL_HERE)
                if lines or not is_all:
                    await pause(APART_SECONDS)  # a flood is told in parts, not chunk by chunk
                if not is_all:
                    continue
                if is_over:
                    await send_part(send, b"event: end\ndata: {}\n\n")
                    return
                if has_ended:
                    is_over = True
                    await pause(LAST_WORDS_SECONDS)
                else:
                    await self._reading.until_news()
        except FairwayError:
            return  # the store is away: the client comes back with the last id it has


def _event(place: LogPlace, line: wire.LogLine) -> bytes:
    head = f"id: {_text(place)}\nevent: line\nretry: {RETRY_MS}\ndata: "
    return head.encode() + msgspec.json.encode(line) + b"\n\n"


async def _last_words(platform: Platform, tenant: TenantId, finished_at: datetime | None) -> None:
    """Who asks at the very end of a job hears its last lines, too: they come beside that word."""
    if finished_at is None or not platform.waiting.has_slot("waits", tenant):
        return
    ago_seconds = (platform.store_clock.now() - finished_at).total_seconds()
    if 0 <= ago_seconds < LAST_WORDS_SECONDS:
        with platform.waiting.slot("waits", tenant):
            await pause(LAST_WORDS_SECONDS - ago_seconds)


def _attempt(text: str | None) -> int | None:
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 5 and int(text) >= 1:
        return int(text)
    raise InvalidRequest("attempt is a number from 1 on.", field="attempt")


def _limit(text: str | None) -> int:
    if text is None:
        return LINES_DEFAULT
    if text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= LINES_MAX:
        return int(text)
    raise InvalidRequest(f"limit is a number from 1 to {LINES_MAX}.", field="limit")


def _text(place: LogPlace) -> str:
    return f"{place.epoch}.{place.n}"


def _place(text: str | None) -> LogPlace:
    if not text:
        return BEGINNING
    epoch, _, n = text.partition(".")
    is_place = text.isascii() and epoch.isdigit() and n.isdigit() and len(text) <= 24
    if is_place and int(epoch) < 1 << 63 and int(n) < 1 << 15:
        return LogPlace(Epoch(int(epoch)), int(n))
    raise InvalidRequest("The cursor is not one of ours.", code="INVALID_CURSOR", field="cursor")
