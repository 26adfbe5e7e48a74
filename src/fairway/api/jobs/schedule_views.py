"""Schedules between the wire and the platform: names and seconds here, numbers there."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from fairway.api.jobs.times import checked_ms
from fairway.core.errors import InvalidRequest
from fairway.core.ids import TypeId
from fairway.core.lifecycle import State
from fairway.core.scheduling.schedule import PastRun, RunCause, RunOutcome, Schedule, ScheduleSpec
from fairway.core.scheduling.ticks import CATCH_UP_BY_LABEL, OVERLAP_BY_LABEL, CatchUp, Overlap
from fairway.services.platform import Platform
from fairway.services.scheduling.schedule_jobs import recurrence
from fairway.wire.schedules import ScheduleRequest, ScheduleRun, ScheduleView


def terms_of(wanted: ScheduleRequest, platform: Platform) -> ScheduleSpec:
    """`type` is filled in when the platform knows its number."""
    now = platform.schedules.now()
    _check_argument(wanted)
    for field, moment in (("/starts_at", wanted.starts_at), ("/ends_at", wanted.ends_at)):
        if moment is not None:
            checked_ms(moment, field)  # refuses moments that no calendar reaches
    return ScheduleSpec(
        cron=wanted.cron,
        every_ms=_ms(wanted.every_seconds),
        zone=wanted.timezone,
        type=TypeId(0),
        pool=platform.registry.pool_for(wanted.type, wanted.pool),
        priority=wanted.priority,
        timeout_ms=_ms(wanted.timeout_seconds),
        payload=bytes(wanted.payload),
        tick_argument=wanted.tick_argument,
        jitter_ms=_ms(wanted.jitter_seconds) or 0,
        starts_at=now if wanted.starts_at is None else wanted.starts_at,
        ends_at=wanted.ends_at,
        overlap=OVERLAP_BY_LABEL[wanted.overlap],
        catch_up=CATCH_UP_BY_LABEL[wanted.catch_up],
        window_ms=_ms(wanted.catch_up_window_seconds) or 0,
        paused=wanted.paused,
        source=wanted.source,
    )


def _check_argument(wanted: ScheduleRequest) -> None:
    name = wanted.tick_argument
    if name is not None and name in msgspec.json.decode(wanted.payload):
        raise InvalidRequest(
            f"The payload has {name!r} already; the tick needs an argument of its own.",
            field="/tick_argument",
        )


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


async def schedule_view(schedule: Schedule, platform: Platform) -> ScheduleView:
    spec = schedule.spec
    return ScheduleView(
        name=schedule.key.name,
        description=recurrence(spec).text,
        cron=spec.cron,
        every_seconds=_seconds(spec.every_ms),
        timezone=spec.zone,
        type=await platform.directory.type_name(spec.type),
        payload=Raw(spec.payload),
        pool=platform.directory.pools.by_number[spec.pool].name,
        priority=spec.priority,
        timeout_seconds=_seconds(spec.timeout_ms),
        tick_argument=spec.tick_argument,
        jitter_seconds=spec.jitter_ms / 1000,
        starts_at=spec.starts_at,
        ends_at=spec.ends_at,
        overlap=Overlap(spec.overlap).label,
        catch_up=CatchUp(spec.catch_up).label,
        catch_up_window_seconds=spec.window_ms / 1000,
        paused=spec.paused,
        source=spec.source,
        next_runs=[]
        if spec.paused
        else await platform.schedules.next_runs(schedule.key.tenant, spec),
        last_job=schedule.last_job,
        created_at=schedule.created_at,
        updated_at=schedule.updated_at,
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def run_view(run: PastRun, state: State | None) -> ScheduleRun:
    return ScheduleRun(
        tick=run.tick,
        outcome=RunOutcome(run.outcome).label,
        cause=RunCause(run.cause).label,
        job=run.job,
        state=None if state is None else state.label,
        recorded_at=run.recorded_at,
    )
