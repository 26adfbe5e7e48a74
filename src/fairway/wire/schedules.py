"""Recurring schedules on the wire: what a tenant says of one, and how it looks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from fairway.wire.messages import (
    EMPTY_OBJECT,
    END,
    JobType,
    Moment,
    PoolName,
    Priority,
    TimeoutSeconds,
)

SCHEDULE_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}" + END

Overlap = Literal["allow", "skip", "queue_one", "cancel_running"]
CatchUp = Literal["none", "last", "all"]
EverySeconds = Annotated[float, Meta(ge=0.001, le=366 * 24 * 3600)]
JitterSeconds = Annotated[float, Meta(ge=0, le=3600)]
WindowSeconds = Annotated[float, Meta(ge=0, le=31 * 24 * 3600)]
CronText = Annotated[str, Meta(max_length=200, examples=["0 9 * * MON-FRI"])]
ZoneName = Annotated[str, Meta(max_length=64, examples=["Europe/Lisbon"])]
Argument = Annotated[str, Meta(min_length=1, max_length=64)]
SourceName = Annotated[str, Meta(max_length=128)]


class ScheduleRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A recurring schedule: when (`cron` or `every_seconds`), and the job that each tick makes."""

    cron: CronText | None = None
    every_seconds: EverySeconds | None = None
    timezone: ZoneName = "UTC"
    type: JobType
    payload: Raw = EMPTY_OBJECT
    pool: PoolName | None = None
    priority: Priority = 5
    timeout_seconds: TimeoutSeconds | None = None
    tick_argument: Argument | None = None
    jitter_seconds: JitterSeconds = 0
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    catch_up_window_seconds: WindowSeconds = 3600
    paused: bool = False
    source: SourceName = ""


class ScheduleView(Struct, kw_only=True):
    """A schedule as it stands."""

    name: str
    description: str
    cron: str | None
    every_seconds: float | None
    timezone: str
    type: str
    payload: Raw
    pool: str
    priority: int
    timeout_seconds: float | None
    tick_argument: str | None
    jitter_seconds: float
    starts_at: datetime
    ends_at: datetime | None
    overlap: str
    catch_up: str
    catch_up_window_seconds: float
    paused: bool
    source: str
    next_runs: list[datetime]
    last_job: str | None
    created_at: datetime
    updated_at: datetime


class ScheduleList(Struct, kw_only=True):
    """A page of schedules by name; `next_cursor` is null on the last page."""

    schedules: list[ScheduleView]
    next_cursor: str | None = None


class SchedulePreview(Struct, kw_only=True):
    """What a schedule would do; nothing is kept."""

    description: str
    next_runs: list[datetime]


class ScheduleRun(Struct, kw_only=True):
    """What became of one tick."""

    tick: datetime
    outcome: str
    cause: str
    job: str | None
    recorded_at: datetime


class ScheduleRuns(Struct, kw_only=True):
    """Runs of one schedule, newest first; `next_before` is null on the last page."""

    runs: list[ScheduleRun]
    next_before: datetime | None = None


class BackfillRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A range of the past, both ends included."""

    since: Moment
    until: Moment


class BackfillReply(Struct, kw_only=True):
    """How many runs were made, and how many ticks had theirs before."""

    made: int
    already: int


encode = msgspec.json.Encoder().encode
