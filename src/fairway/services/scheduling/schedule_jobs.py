"""From a schedule and a tick to a job: its times, its payload, its run. No I/O happens here."""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import JobId
from fairway.core.job import QueuedJob
from fairway.core.scheduling.schedule import Cause, RunOutcome, Schedule, ScheduleTerms
from fairway.core.scheduling.ticks import spread_of
from fairway.core.scheduling.timing import Timing
from fairway.core.unix_time import from_unix_ms, to_unix_ms
from fairway.services.scheduling.cron import Recurrence, recurrence_of
from fairway.store.schedules import Run


class Firing(NamedTuple):
    """A run to claim, and the job to write if the claim holds."""

    run: Run
    job: QueuedJob


def recurrence(terms: ScheduleTerms) -> Recurrence:
    return recurrence_of(
        cron=terms.cron,
        every_ms=terms.every_ms,
        zone=terms.zone,
        anchor_ms=to_unix_ms(terms.starts_at),
    )


def next_tick(terms: ScheduleTerms, after_ms: int) -> datetime | None:
    """The first tick after a moment that the schedule's end still allows."""
    found = next(recurrence(terms).after(max(after_ms, to_unix_ms(terms.starts_at) - 1)), None)
    if found is None or (terms.ends_at is not None and found > to_unix_ms(terms.ends_at)):
        return None
    return from_unix_ms(found)


def may_be_tick(terms: ScheduleTerms, moment_ms: int) -> bool:
    """Whether the clock could fire at this moment; cheap, so a cron's whole seconds all count."""
    if terms.every_ms is None:
        return moment_ms % 1000 == 0
    return (moment_ms - to_unix_ms(terms.starts_at)) % terms.every_ms == 0


def firing(
    schedule: Schedule, job_id: JobId, tick_ms: int, cause: Cause, due_ms: int | None = None
) -> Firing:
    """The job of a tick, due at it (with the schedule's spread) or at another moment."""
    terms, place = schedule.terms, schedule.place
    if due_ms is None:
        due_ms = tick_ms + spread_of(place.name, tick_ms, terms.jitter_ms)
    job = QueuedJob(
        job_id, place.tenant, terms.pool, terms.type, terms.priority, 0, 0, 0, 0,
        terms.timeout_ms, payload_of(terms, tick_ms), None, Timing(due_ms).row,
    )  # fmt: skip
    return Firing(
        Run(place.tenant, place.name, from_unix_ms(tick_ms), cause, RunOutcome.FIRED, job_id), job
    )


def payload_of(terms: ScheduleTerms, tick_ms: int) -> bytes:
    if terms.tick_argument is None:
        return terms.payload
    tick = from_unix_ms(tick_ms).isoformat().replace("+00:00", "Z")
    given = {terms.tick_argument: tick}
    body = terms.payload.strip()
    added = json.dumps(given).encode()
    return added if body[1:-1].strip() == b"" else added[:-1] + b"," + body[1:]
