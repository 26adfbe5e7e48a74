"""`/v1/schedules…`: recurring schedules of the key's tenant. Translates; decides nothing."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairway.api.auth import tenant_of
from fairway.api.http.asgi import BODY_BYTES, read_body
from fairway.api.http.decoding import UNDECODABLE, decoded, invalid, json_reply
from fairway.api.http.page_streams import PageReply
from fairway.api.jobs.schedule_views import run_view, schedule_view, terms_of
from fairway.api.payloads.body_cost import CAREFUL_BYTES_MAX, is_large, weigh
from fairway.core.errors import InvalidRequest, NotFound
from fairway.core.scheduling.schedule import Place
from fairway.runtime.loops import WorkInParts
from fairway.services.platform import Platform
from fairway.services.scheduling.schedules import is_cut
from fairway.wire.messages import JobAccepted
from fairway.wire.payload import check_carefully, check_payload, is_plain
from fairway.wire.schedules import (
    SCHEDULE_NAME_PATTERN,
    BackfillReply,
    BackfillRequest,
    ScheduleList,
    SchedulePreview,
    ScheduleRequest,
    ScheduleRuns,
)

PAGE_DEFAULT, PAGE_MAX = 50, 200
ENVELOPE_BYTES_MAX = 8 << 10  # of a schedule, around its payload


async def put_schedule(request: Request) -> Response:
    platform, place = await _place(request)
    wanted = await _wanted(request, platform)
    terms = terms_of(wanted, platform)
    is_new = await platform.schedules.put(place, terms, wanted.type)
    return await _show(platform, place, 201 if is_new else 200)


async def get_schedule(request: Request) -> Response:
    platform, place = await _place(request)
    return await _show(platform, place)


async def delete_schedule(request: Request) -> Response:
    platform, place = await _place(request)
    await platform.schedules.remove(place)
    return Response(status_code=204)


async def list_schedules(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    limit, after = _limit(request), request.query_params.get("cursor", "")
    _check_query(request, "limit", "cursor")
    if after and not re.fullmatch(SCHEDULE_NAME_PATTERN, after):
        raise InvalidRequest(
            "The cursor is not one of ours.", code="INVALID_CURSOR", field="cursor"
        )

    async def look() -> Response:
        found = await platform.schedules.page(tenant.id, after, limit + 1)
        views, work = [], WorkInParts()
        for schedule in found[:limit]:
            views.append(await schedule_view(schedule, platform))
            await work.let_others()
        is_more = len(found) > limit or is_cut(found)
        cursor = views[-1].name if is_more else None
        return json_reply(ScheduleList(schedules=views, next_cursor=cursor))

    return PageReply(request.app.state.pages, tenant.id, look)


async def preview(request: Request) -> Response:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    terms = terms_of(await _wanted(request, platform), platform)
    # It leaves nothing behind that any other limit would count.
    platform.admission.charge(tenant, request.scope[BODY_BYTES])
    text, next_runs = await platform.schedules.preview(tenant.id, terms)
    return json_reply(SchedulePreview(description=text, next_runs=next_runs))


async def pause(request: Request) -> Response:
    platform, place = await _place(request)
    await platform.schedules.pause(place, True)
    return await _show(platform, place)


async def resume(request: Request) -> Response:
    platform, place = await _place(request)
    await platform.schedules.pause(place, False)
    return await _show(platform, place)


async def trigger(request: Request) -> Response:
    platform, place = await _place(request)
    job = await platform.schedules.trigger(place)
    reply = json_reply(JobAccepted(id=job, state="scheduled"), 202)
    reply.headers["location"] = f"/v1/jobs/{job}"
    return reply


async def backfill(request: Request) -> Response:
    platform, place = await _place(request)
    wanted = await decoded(request, BackfillRequest)
    made, already = await platform.schedules.backfill(place, wanted.since, wanted.until)
    return json_reply(BackfillReply(made=made, already=already))


async def list_runs(request: Request) -> Response:
    platform, place = await _place(request)
    _check_query(request, "limit", "before")
    limit = _limit(request)
    found = await platform.schedules.runs(place, _before(request), limit + 1)
    views = [run_view(run) for run in found[:limit]]
    following = views[-1].tick if len(found) > limit else None
    return json_reply(ScheduleRuns(runs=views, next_before=following))


# -- what requests have in common ----------------------------------------------------------------


async def _place(request: Request) -> tuple[Platform, Place]:
    platform: Platform = request.app.state.platform
    tenant = await tenant_of(request.scope, platform.directory)
    name = request.path_params["name"]
    if not re.fullmatch(SCHEDULE_NAME_PATTERN, name):
        if request.method == "PUT":
            raise InvalidRequest(
                "A schedule's name has up to 64 letters, digits and _.- and begins with a letter"
                " or digit.",
                field="name",
            )
        raise NotFound(f"There is no schedule {name[:64]!r}.")
    return platform, platform.schedules.place(tenant.id, name)


async def _wanted(request: Request, platform: Platform) -> ScheduleRequest:
    """What is long or refused is paid for, and looked at in the lane, as jobs are."""
    tenant = await tenant_of(request.scope, platform.directory)
    payload_max = platform.settings.inline_bytes_max
    if is_large(request.scope):
        platform.admission.refuse_debtors(tenant)
    try:
        body = await read_body(
            request.scope, request.receive, payload_max + ENVELOPE_BYTES_MAX,
            counted=(platform.bodies.requests, tenant.id),
        )  # fmt: skip
        if len(body) < CAREFUL_BYTES_MAX:
            return _understood(body, payload_max)
        return await platform.heavy.run(
            tenant.id, partial(_understood, body, payload_max), len(body)
        )
    except InvalidRequest:
        platform.admission.charge(tenant, request.scope.get(BODY_BYTES, 0))
        raise


def _understood(body: bytes, payload_max: int) -> ScheduleRequest:
    weigh(body)
    try:
        wanted = msgspec.json.decode(body, type=ScheduleRequest)
    except UNDECODABLE as error:
        raise invalid(error, body) from None
    check_payload(bytes(wanted.payload), payload_max)
    if not is_plain(body):
        check_carefully(body)
    return wanted


async def _show(platform: Platform, place: Place, status: int = 200) -> Response:
    view = await schedule_view(await platform.schedules.read(place), platform)
    return json_reply(view, status)


def _check_query(request: Request, *known: str) -> None:
    for name in request.query_params:
        if name not in known:
            raise InvalidRequest(
                f"There is no parameter {name[:64]!r}; there are {', '.join(known)}.", field=name
            )


def _limit(request: Request) -> int:
    text = request.query_params.get("limit", str(PAGE_DEFAULT))
    if text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= PAGE_MAX:
        return int(text)
    raise InvalidRequest(f"limit is a number from 1 to {PAGE_MAX}.", field="limit")


def _before(request: Request) -> datetime | None:
    text = request.query_params.get("before")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))
        if moment.tzinfo is None:
            raise ValueError
        return moment
    except ValueError:
        raise InvalidRequest(
            "before is a time with its zone, such as 2026-01-31T12:00:00Z.", field="before"
        ) from None
