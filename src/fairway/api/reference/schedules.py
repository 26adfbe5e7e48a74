"""Recurring schedules, as operations."""

from __future__ import annotations

from typing import Any

from fairway.api.reference import shared
from fairway.api.reference.shape import Group, Operation, Parameter, Reply
from fairway.wire.messages import JobAccepted
from fairway.wire.schedules import (
    BackfillReply,
    BackfillRequest,
    ScheduleList,
    SchedulePreview,
    ScheduleRequest,
    ScheduleRuns,
    ScheduleView,
)

_BODY = ("INVALID_JSON", "INVALID_REQUEST", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE",
         "REQUEST_TIMEOUT")  # fmt: skip
_LANE = ("TOO_MANY_WAITING", *shared.QUICK)
_RUNS = ("QUEUE_DEPTH_EXCEEDED", "TENANT_RATE_LIMIT_EXCEEDED")  # they are jobs as any other
_NAME = Parameter(
    name="name",
    place="path",
    about="The schedule's name, of your choice: up to 64 letters, digits and `_.-`.",
    example="daily-report",
    shell="daily-report",
)
_LIMIT = Parameter(
    name="limit", place="query", about="Entries in one page.", example="50", shell="50",
    schema={"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
)  # fmt: skip

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
    "last_job": shared.JOB_ID,
    "created_at": "2026-01-31T12:00:00Z",
    "updated_at": "2026-01-31T12:00:00Z",
}
_SHOWN = Reply(status=200, about="The schedule.", kind=ScheduleView, example=_VIEW)

PUT = Operation(
    name="putSchedule",
    method="PUT",
    path="/v1/schedules/{name}",
    summary="Make or replace a schedule",
    about="Each tick of the schedule makes one job. Ticks before this moment are never made up"
    " for: neither by a new schedule nor by a changed one. An expression that never comes, or comes"
    " more often than every ten seconds, is refused.\n\n"
    "The page SCHEDULES in the documentation tells all about zones, overlap and outages.",
    key="tenant",
    parameters=(_NAME,),
    body=ScheduleRequest,
    body_example=_WANTED,
    replies=(
        Reply(status=201, about="The new schedule.", kind=ScheduleView, example=_VIEW),
        _SHOWN,
    ),
    problems=(
        *_BODY,
        "UNKNOWN_POOL",
        "TOO_MANY_JOB_TYPES",
        "TOO_MANY_SCHEDULES",
        *_LANE,
        "TENANT_RATE_LIMIT_EXCEEDED",
    ),
)

READ = Operation(
    name="getSchedule",
    method="GET",
    path="/v1/schedules/{name}",
    summary="Get a schedule",
    about="With its next runs, and in plain English.",
    key="tenant",
    parameters=(_NAME,),
    replies=(_SHOWN,),
    problems=("NOT_FOUND", *_LANE),
)

LIST = Operation(
    name="listSchedules",
    method="GET",
    path="/v1/schedules",
    summary="List schedules",
    about="By name. Follow `next_cursor` until it is null.",
    key="tenant",
    parameters=(
        _LIMIT,
        Parameter(
            name="cursor", place="query", about="`next_cursor` of the page before.",
            example="daily-report",
        ),
    ),
    replies=(
        Reply(
            status=200,
            about="A page of schedules.",
            kind=ScheduleList,
            example={"schedules": [_VIEW], "next_cursor": None},
        ),
    ),
    problems=("INVALID_REQUEST", "INVALID_CURSOR", *_LANE),
)  # fmt: skip

PREVIEW = Operation(
    name="previewSchedule",
    method="POST",
    path="/v1/schedule-preview",
    summary="See what a schedule would do",
    about="In plain English, with its next runs. Nothing is kept.",
    key="tenant",
    body=ScheduleRequest,
    body_example=_WANTED,
    replies=(
        Reply(
            status=200,
            about="What it would do.",
            kind=SchedulePreview,
            example={"description": _VIEW["description"], "next_runs": _NEXT},
        ),
    ),
    problems=(*_BODY, "UNKNOWN_POOL", *_LANE, "TENANT_RATE_LIMIT_EXCEEDED"),
)

PAUSE = Operation(
    name="pauseSchedule",
    method="POST",
    path="/v1/schedules/{name}/pause",
    summary="Pause a schedule",
    about="No tick makes a job until it is resumed. Jobs that were made before stay.",
    key="tenant",
    parameters=(_NAME,),
    replies=(_SHOWN,),
    problems=("NOT_FOUND", *_LANE),
)

RESUME = Operation(
    name="resumeSchedule",
    method="POST",
    path="/v1/schedules/{name}/resume",
    summary="Resume a schedule",
    about="From the next tick on. What was due meanwhile is not made up for; use a backfill.",
    key="tenant",
    parameters=(_NAME,),
    replies=(_SHOWN,),
    problems=("NOT_FOUND", *_LANE),
)

TRIGGER = Operation(
    name="triggerSchedule",
    method="POST",
    path="/v1/schedules/{name}/trigger",
    summary="Run a schedule now",
    about="One run, at once, beside whatever else runs. Paused schedules can be run as well.",
    key="tenant",
    parameters=(_NAME,),
    replies=(
        Reply(
            status=202,
            about="The job is on disk.",
            kind=JobAccepted,
            headers=(shared.LOCATION,),
            example={"id": shared.JOB_ID, "state": "scheduled"},
        ),
    ),
    problems=("NOT_FOUND", *_RUNS, *shared.QUICK),
)

BACKFILL = Operation(
    name="backfillSchedule",
    method="POST",
    path="/v1/schedules/{name}/backfill",
    summary="Make up for the past",
    about="A run for every tick in a range of the past that has none, all due now. A tick is run"
    " once: asked twice, the second answer counts them under `already`. At most 1 000 ticks.",
    key="tenant",
    parameters=(_NAME,),
    body=BackfillRequest,
    body_example={"since": "2026-01-01T00:00:00Z", "until": "2026-01-31T00:00:00Z"},
    replies=(
        Reply(
            status=200,
            about="What was made.",
            kind=BackfillReply,
            example={"made": 22, "already": 0},
        ),
    ),
    problems=(*_BODY, "NOT_FOUND", *_LANE, *_RUNS),
)

RUNS = Operation(
    name="listScheduleRuns",
    method="GET",
    path="/v1/schedules/{name}/runs",
    summary="List the runs of a schedule",
    about="Newest first: ticks that made a job, that were skipped, and the one that waits. Kept as"
    " long as jobs are.",
    key="tenant",
    parameters=(
        _NAME,
        _LIMIT,
        Parameter(
            name="before", place="query", about="`next_before` of the page before.",
            example="2026-01-31T09:00:00Z", schema={"type": "string", "format": "date-time"},
        ),
    ),
    replies=(
        Reply(
            status=200,
            about="A page of runs.",
            kind=ScheduleRuns,
            example={
                "runs": [
                    {
                        "tick": "2026-01-30T09:00:00Z",
                        "outcome": "fired",
                        "cause": "clock",
                        "job": shared.JOB_ID,
                        "recorded_at": "2026-01-30T09:00:00.012Z",
                    }
                ],
                "next_before": None,
            },
        ),
    ),
    problems=("INVALID_REQUEST", "NOT_FOUND", *shared.QUICK),
)  # fmt: skip

DELETE = Operation(
    name="deleteSchedule",
    method="DELETE",
    path="/v1/schedules/{name}",
    summary="Delete a schedule",
    about="With the list of its runs. Jobs that it made stay.",
    key="tenant",
    parameters=(_NAME,),
    replies=(Reply(status=204, about="The schedule is gone."),),
    problems=("NOT_FOUND", *shared.QUICK),
)

SCHEDULES = Group(
    name="Schedules",
    about="Jobs that come again and again, by cron or by interval. These need a tenant's key.",
    operations=(
        PUT, READ, LIST, PREVIEW, PAUSE, RESUME, TRIGGER, BACKFILL, RUNS, DELETE,
    ),
)  # fmt: skip
