"""Recurring schedules on the wire: what a tenant says of one, and how it looks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from fairway.wire.doc import doc
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

CRON = doc("Minute, hour, day of month, month, day of week; seconds may come before them.")
EVERY_SECONDS = doc("A fixed interval instead, counted from starts_at.")
TIMEZONE = doc("Whose clocks the expression means.")
PAYLOAD = doc("The handler's arguments by name.", dict[str, Any])
POOL = doc("The class of workers to run it.")
PRIORITY = doc("Order among your own jobs only: 9 goes before 0.")
TIMEOUT_SECONDS = doc("A run that takes longer is stopped and counts as a failed attempt.")
TICK_ARGUMENT = doc("The handler's argument that gets the tick, as a UTC time.")
JITTER_SECONDS = doc("Each run is due up to this long after its tick, always the same for a tick.")
STARTS_AT = doc("No tick before it; now, unless told otherwise.")
OVERLAP = doc(
    "What a tick does while the run before it is not over: allow, skip, queue_one or"
    " cancel_running."
)
CATCH_UP = doc("Which ticks that nobody was there to fire are run later: none, last or all.")
CATCH_UP_WINDOW_SECONDS = doc("How far back `all` goes; never more than 100 ticks.")
SOURCE = doc("The app that declares it; empty for one made by hand.")
NEXT_CURSOR = doc("Ask for the next page with it; null on the last page.")


class ScheduleRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A recurring schedule: when (`cron` or `every_seconds`), and the job that each tick makes."""

    cron: Annotated[CronText | None, CRON] = None
    every_seconds: Annotated[EverySeconds | None, EVERY_SECONDS] = None
    timezone: Annotated[ZoneName, TIMEZONE] = "UTC"
    type: Annotated[JobType, doc("Which handler runs each job.")]
    payload: Annotated[Raw, PAYLOAD] = EMPTY_OBJECT
    pool: Annotated[PoolName | None, POOL] = None
    priority: Annotated[Priority, PRIORITY] = 5
    timeout_seconds: Annotated[TimeoutSeconds | None, TIMEOUT_SECONDS] = None
    tick_argument: Annotated[Argument | None, TICK_ARGUMENT] = None
    jitter_seconds: Annotated[JitterSeconds, JITTER_SECONDS] = 0
    starts_at: Annotated[Moment | None, STARTS_AT] = None
    ends_at: Annotated[Moment | None, doc("No tick after it.")] = None
    overlap: Annotated[Overlap, OVERLAP] = "skip"
    catch_up: Annotated[CatchUp, CATCH_UP] = "last"
    catch_up_window_seconds: Annotated[WindowSeconds, CATCH_UP_WINDOW_SECONDS] = 3600
    paused: Annotated[bool, doc("Whether its ticks are silent.")] = False
    source: Annotated[SourceName, SOURCE] = ""


class ScheduleView(Struct, kw_only=True):
    """A schedule as it stands."""

    name: Annotated[str, doc("Its name.")]
    description: Annotated[str, doc("In plain English.")]
    cron: Annotated[str | None, CRON]
    every_seconds: Annotated[float | None, EVERY_SECONDS]
    timezone: Annotated[str, TIMEZONE]
    type: Annotated[str, doc("Which handler runs each job.")]
    payload: Annotated[Raw, PAYLOAD]
    pool: Annotated[str, POOL]
    priority: Annotated[int, PRIORITY]
    timeout_seconds: Annotated[float | None, TIMEOUT_SECONDS]
    tick_argument: Annotated[str | None, TICK_ARGUMENT]
    jitter_seconds: Annotated[float, JITTER_SECONDS]
    starts_at: Annotated[datetime, STARTS_AT]
    ends_at: Annotated[datetime | None, doc("No tick after it.")]
    overlap: Annotated[str, OVERLAP]
    catch_up: Annotated[str, CATCH_UP]
    catch_up_window_seconds: Annotated[float, CATCH_UP_WINDOW_SECONDS]
    paused: Annotated[bool, doc("Whether its ticks are silent.")]
    source: Annotated[str, SOURCE]
    next_runs: Annotated[list[datetime], doc("Its next ticks; none while paused or after its end.")]
    last_job: Annotated[str | None, doc("The job of its newest run by the clock.")]
    created_at: Annotated[datetime, doc("When it was made.")]
    updated_at: Annotated[datetime, doc("When it was last changed.")]


class ScheduleList(Struct, kw_only=True):
    """A page of schedules by name; `next_cursor` is null on the last page."""

    schedules: Annotated[list[ScheduleView], doc("By name.")]
    next_cursor: Annotated[str | None, NEXT_CURSOR] = None


class SchedulePreview(Struct, kw_only=True):
    """What a schedule would do; nothing is kept."""

    description: Annotated[str, doc("In plain English.")]
    next_runs: Annotated[list[datetime], doc("Its next ticks.")]


class ScheduleRun(Struct, kw_only=True):
    """What became of one tick."""

    tick: Annotated[datetime, doc("The moment it stands for, and its identity.")]
    outcome: Annotated[
        str, doc("fired, skipped (the run before it was not over), or waiting for that.")
    ]
    cause: Annotated[str, doc("clock, backfill or trigger.")]
    job: Annotated[str | None, doc("The job it made.")]
    state: Annotated[
        str | None, doc("Of that job, as it is now; null when there is none, or it is not kept.")
    ]
    recorded_at: Annotated[datetime, doc("When that happened.")]


class ScheduleRuns(Struct, kw_only=True):
    """Runs of one schedule, newest first; `next_before` is null on the last page."""

    runs: Annotated[list[ScheduleRun], doc("Newest first.")]
    next_before: Annotated[datetime | None, NEXT_CURSOR] = None


class BackfillRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A range of the past, both ends included."""

    since: Annotated[Moment, doc("From this moment.")]
    until: Annotated[Moment, doc("To this one, in the past.")]


class BackfillReply(Struct, kw_only=True):
    """How many runs were made, and how many ticks had theirs before."""

    made: Annotated[int, doc("Runs that were made.")]
    already: Annotated[int, doc("Ticks of the range that had a run before.")]
