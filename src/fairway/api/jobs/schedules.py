"""`/v1/schedules…`: recurring schedules of the key's tenant. Translates; decides nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fairway.api import endpoint_parts as parts
from fairway.api import filters
from fairway.api.auth import actor_of
from fairway.api.endpoint import Endpoint, Reply, path, query
from fairway.api.http.asgi import BODY_BYTES
from fairway.api.http.decoding import decoded, json_reply
from fairway.api.http.page_streams import PageReply
from fairway.api.jobs.schedule_requests import check_query, moment_before, place_of, wanted_schedule
from fairway.api.jobs.schedule_views import run_view, schedule_view, terms_of
from fairway.core.errors import InvalidRequest
from fairway.core.scheduling.schedule import ScheduleKey
from fairway.core.tenant import Tenant
from fairway.runtime.loops import WorkInParts
from fairway.services.platform import Platform
from fairway.services.scheduling.schedules import is_cut
from fairway.wire.messages import JobAccepted
from fairway.wire.schedules import (
    SCHEDULE_NAME_PATTERN,
    BackfillReply,
    BackfillRequest,
    ScheduleList,
    SchedulePreview,
    ScheduleRequest,
    ScheduleRuns,
    ScheduleView,
)

OF_LANE = ("TOO_MANY_WAITING", *parts.QUICK)
NAME = path(
    "name",
    "The schedule's name, of your choice: up to 64 letters, digits and `_.-`.",
    "daily-report",
)
LIMIT = replace(filters.named("limit")[0], about="Entries in one page.")
_PAGE = (LIMIT, query("cursor", "`next_cursor` of the page before.", "daily-report"))
_OF_RUNS = ("QUEUE_DEPTH_EXCEEDED", "TENANT_RATE_LIMIT_EXCEEDED")  # they are jobs as any other
_RUNS_PAGE = (
    LIMIT,
    query(
        "before",
        "`next_before` of the page before.",
        "2026-01-31T09:00:00Z",
        schema={"type": "string", "format": "date-time"},
    ),
)
_WANTED: dict[str, Any] = {
    "cron": "0 9 * * MON-FRI",
    "timezone": "Europe/Lisbon",
    "type": "report.build",
    "payload": {"kind": "daily"},
    "pool": "medium",
    "tick_argument": "at",
    "overlap": "skip",
    "catch_up": "last",
}
_NEXT = ["2026-02-02T09:00:00Z", "2026-02-03T09:00:00Z", "2026-02-04T09:00:00Z"]
_VIEW: dict[str, Any] = _WANTED | {
    "name": "daily-report",
    "description": "At 09:00 on Monday through Friday (Europe/Lisbon)",
    "every_seconds": None,
    "priority": 5,
    "timeout_seconds": None,
    "jitter_seconds": 0,
    "starts_at": "2026-01-31T12:00:00Z",
    "ends_at": None,
    "catch_up_window_seconds": 3600,
    "paused": False,
    "source": "",
    "next_runs": _NEXT,
    "last_job": parts.JOB_ID,
    "created_at": "2026-01-31T12:00:00Z",
    "updated_at": "2026-01-31T12:00:00Z",
}
_SHOWN = Reply(200, "The schedule.", ScheduleView, _VIEW)


@Endpoint(
    "PUT /v1/schedules/{name}",
    keys=("tenant",),
    parameters=(NAME,),
    body=ScheduleRequest,
    body_example=_WANTED,
    replies=(
        Reply(201, "The new schedule.", ScheduleView, _VIEW),
        _SHOWN,
    ),
    problems=(
        "UNKNOWN_POOL",
        "TOO_MANY_JOB_TYPES",
        "TOO_MANY_SCHEDULES",
        *OF_LANE,
        "TENANT_RATE_LIMIT_EXCEEDED",
    ),
)
async def put_schedule(request: Request) -> Response:
    """Make or replace a schedule

    Each tick of the schedule makes one job. Ticks before this moment are never made up for:
    neither by a new schedule nor by a changed one. An expression that never comes, or comes more
    often than every ten seconds, is refused.

    The page SCHEDULES in the documentation tells all about zones, overlap and outages.
    """
    platform, key = place_of(request)
    wanted = await wanted_schedule(request, platform)
    spec = terms_of(wanted, platform)
    is_new = await platform.schedules.put(key, spec, wanted.type, actor_of(request))
    return await _show(platform, key, 201 if is_new else 200)


@Endpoint(
    "GET /v1/schedules/{name}",
    keys=("tenant",),
    parameters=(NAME,),
    reply=_SHOWN,
    problems=("NOT_FOUND", *OF_LANE),
)
async def get_schedule(request: Request) -> Response:
    """Get a schedule

    With its next runs, and in plain English.
    """
    platform, key = place_of(request)
    return await _show(platform, key)


@Endpoint(
    "GET /v1/schedules",
    keys=("tenant",),
    parameters=_PAGE,
    reply=Reply(
        200, "A page of schedules.", ScheduleList, {"schedules": [_VIEW], "next_cursor": None}
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", *OF_LANE),
)
async def list_schedules(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """List schedules

    By name. Follow `next_cursor` until it is null.
    """
    limit, after = (
        filters.limit(request.query_params.get("limit")),
        request.query_params.get("cursor", ""),
    )
    check_query(request, _PAGE)
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


@Endpoint(
    "POST /v1/schedule-preview",
    keys=("tenant",),
    permission="read",
    body=ScheduleRequest,
    body_example=_WANTED,
    reply=Reply(
        200,
        "What it would do.",
        SchedulePreview,
        {"description": _VIEW["description"], "next_runs": _NEXT},
    ),
    problems=("UNKNOWN_POOL", *OF_LANE, "TENANT_RATE_LIMIT_EXCEEDED"),
)
async def preview_schedule(request: Request, platform: Platform, tenant: Tenant) -> Response:
    """See what a schedule would do

    In plain English, with its next runs. Nothing is kept.
    """
    spec = terms_of(await wanted_schedule(request, platform), platform)
    # It leaves nothing behind that any other limit would count.
    platform.admission.charge(tenant, request.scope[BODY_BYTES])
    text, next_runs = await platform.schedules.preview(tenant.id, spec)
    return json_reply(SchedulePreview(description=text, next_runs=next_runs))


@Endpoint(
    "POST /v1/schedules/{name}/pause",
    keys=("tenant",),
    parameters=(NAME,),
    reply=_SHOWN,
    problems=("NOT_FOUND", *OF_LANE),
)
async def pause_schedule(request: Request) -> Response:
    """Pause a schedule

    No tick makes a job until it is resumed. Jobs that were made before stay.
    """
    platform, key = place_of(request)
    await platform.schedules.pause(key, True, actor_of(request))
    return await _show(platform, key)


@Endpoint(
    "POST /v1/schedules/{name}/resume",
    keys=("tenant",),
    parameters=(NAME,),
    reply=_SHOWN,
    problems=("NOT_FOUND", *OF_LANE),
)
async def resume_schedule(request: Request) -> Response:
    """Resume a schedule

    From the next tick on. What was due meanwhile is not made up for; use a backfill.
    """
    platform, key = place_of(request)
    await platform.schedules.pause(key, False, actor_of(request))
    return await _show(platform, key)


@Endpoint(
    "POST /v1/schedules/{name}/trigger",
    keys=("tenant",),
    parameters=(NAME,),
    reply=Reply(
        202,
        "The job is on disk.",
        JobAccepted,
        {"id": parts.JOB_ID, "state": "scheduled"},
        headers=(parts.LOCATION,),
    ),
    problems=("NOT_FOUND", *_OF_RUNS, *parts.QUICK),
)
async def trigger_schedule(request: Request) -> Response:
    """Run a schedule now

    One run, at once, beside whatever else runs. Paused schedules can be run as well.
    """
    platform, key = place_of(request)
    job = await platform.schedules.trigger(key)
    reply = json_reply(JobAccepted(id=job, state="scheduled"), 202)
    reply.headers["location"] = f"/v1/jobs/{job}"
    return reply


@Endpoint(
    "POST /v1/schedules/{name}/backfill",
    keys=("tenant",),
    parameters=(NAME,),
    body=BackfillRequest,
    body_example={"since": "2026-01-01T00:00:00Z", "until": "2026-01-31T00:00:00Z"},
    reply=Reply(200, "What was made.", BackfillReply, {"made": 22, "already": 0}),
    problems=("NOT_FOUND", *OF_LANE, *_OF_RUNS),
)
async def backfill_schedule(request: Request) -> Response:
    """Make up for the past

    A run for every tick in a range of the past that has none, all due now. A tick is run once:
    asked twice, the second answer counts them under `already`. At most 1 000 ticks.
    """
    platform, key = place_of(request)
    wanted = await decoded(request, BackfillRequest)
    asked = wanted.since, wanted.until
    made, already = await platform.schedules.backfill(key, *asked, actor_of(request))
    return json_reply(BackfillReply(made=made, already=already))


@Endpoint(
    "GET /v1/schedules/{name}/runs",
    keys=("tenant",),
    parameters=(NAME, *_RUNS_PAGE),
    reply=Reply(
        200,
        "A page of runs.",
        ScheduleRuns,
        {
            "runs": [
                {
                    "tick": "2026-01-30T09:00:00Z",
                    "outcome": "fired",
                    "cause": "clock",
                    "job": parts.JOB_ID,
                    "state": "succeeded",
                    "recorded_at": "2026-01-30T09:00:00.012Z",
                }
            ],
            "next_before": None,
        },
    ),
    problems=("INVALID_REQUEST", "NOT_FOUND", *parts.QUICK),
)
async def list_schedule_runs(request: Request) -> Response:
    """List the runs of a schedule

    Newest first: ticks that made a job, that were skipped, and the one that waits. Kept as long as
    jobs are.
    """
    platform, key = place_of(request)
    check_query(request, _RUNS_PAGE)
    limit = filters.limit(request.query_params.get("limit"))
    found = await platform.schedules.runs(key, moment_before(request), limit + 1)
    views = [run_view(run, state) for run, state in found[:limit]]
    following = views[-1].tick if len(found) > limit else None
    return json_reply(ScheduleRuns(runs=views, next_before=following))


@Endpoint(
    "DELETE /v1/schedules/{name}",
    keys=("tenant",),
    parameters=(NAME,),
    reply=Reply(204, "The schedule is gone."),
    problems=("NOT_FOUND", *parts.QUICK),
)
async def delete_schedule(request: Request) -> Response:
    """Delete a schedule

    With the list of its runs. Jobs that it made stay.
    """
    platform, key = place_of(request)
    await platform.schedules.remove(key, actor_of(request))
    return Response(status_code=204)


async def _show(platform: Platform, key: ScheduleKey, status: int = 200) -> Response:
    view = await schedule_view(await platform.schedules.read(key), platform)
    return json_reply(view, status)
