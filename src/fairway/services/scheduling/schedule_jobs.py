"""From a schedule and a tick to a job: its times, its payload, its run. No I/O happens here."""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import NO_EPOCH, JobId
from fairway.core.job import QueuedJob
from fairway.core.scheduling.schedule import RunCause, RunOutcome, Schedule, ScheduleSpec
from fairway.core.scheduling.ticks import spread_of
from fairway.core.scheduling.timing import Timing
from fairway.core.unix_time import from_unix_ms, to_unix_ms
from fairway.services.scheduling.cron import Recurrence, recurrence_of
from fairway.store.schedules import Run


class Firing(NamedTuple):
    """A run to claim, and the job to write if the claim holds."""

    run: Run
    job: QueuedJob


def recurrence(spec: ScheduleSpec) -> Recurrence:
    return recurrence_of(
        cron=spec.cron,
        every_ms=spec.every_ms,
        zone=spec.zone,
        anchor_ms=to_unix_ms(spec.starts_at),
    )


def next_tick(spec: ScheduleSpec, after_ms: int) -> datetime | None:
    """The first tick after a moment that the schedule's end still allows."""
    found = next(recurrence(spec).after(max(after_ms, to_unix_ms(spec.starts_at) - 1)), None)
    if found is None or (spec.ends_at is not None and found > to_unix_ms(spec.ends_at)):
        return None
    return from_unix_ms(found)


def may_be_tick(spec: ScheduleSpec, moment_ms: int) -> bool:
    """Whether the clock could fire at this moment; cheap, so a cron's whole seconds all count."""
    if spec.every_ms is None:
        return moment_ms % 1000 == 0
    return (moment_ms - to_unix_ms(spec.starts_at)) % spec.every_ms == 0


def firing(
    schedule: Schedule, job_id: JobId, tick_ms: int, cause: RunCause, due_ms: int | None = None
) -> Firing:
    """The job of a tick, due at it (with the schedule's spread) or at another moment."""
    spec, key = schedule.spec, schedule.key
    if due_ms is None:
        due_ms = tick_ms + spread_of(key.name, tick_ms, spec.jitter_ms)
    job = QueuedJob(
        job_id,
        key.tenant,
        spec.pool,
        spec.type,
        spec.priority,
        0,
        NO_EPOCH,
        0,
        0,
        spec.timeout_ms,
        payload_of(spec, tick_ms),
        None,
        Timing(due_ms).row,
    )
    return Firing(
        Run(key.tenant, key.name, from_unix_ms(tick_ms), cause, RunOutcome.FIRED, job_id), job
    )


def payload_of(spec: ScheduleSpec, tick_ms: int) -> bytes:
    if spec.tick_argument is None:
        return spec.payload
    tick = from_unix_ms(tick_ms).isoformat().replace("+00:00", "Z")
    given = {spec.tick_argument: tick}
    body = spec.payload.strip()
    added = json.dumps(given).encode()
    return added if body[1:-1].strip() == b"" else added[:-1] + b"," + body[1:]
