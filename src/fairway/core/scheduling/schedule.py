"""A recurring schedule as the parts of the platform hand it around: plain values.

What its ticks do is decided in `ticks.py`; where they come from, in `services/scheduling/cron.py`.
"""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum
from typing import NamedTuple

from fairway.core.ids import JobId, PoolId, ShardId, TenantId, TypeId


class RunCause(IntEnum):
    """Why a run was made."""

    CLOCK = 0
    BACKFILL = 1
    TRIGGER = 2

    @property
    def label(self) -> str:
        return self.name.lower()


class RunOutcome(IntEnum):
    """What became of a tick."""

    FIRED = 0  # it has a job
    SKIPPED = 1  # the run before it was not over
    WAITING = 2  # it runs when the one before it is over

    @property
    def label(self) -> str:
        return self.name.lower()


class ScheduleKey(NamedTuple):
    """Where a schedule is."""

    shard: ShardId
    tenant: TenantId
    name: str


class ScheduleSpec(NamedTuple):
    """What a tenant says about a schedule."""

    cron: str | None
    every_ms: int | None
    zone: str
    type: TypeId
    pool: PoolId
    priority: int
    timeout_ms: int | None
    payload: bytes
    tick_argument: str | None
    jitter_ms: int
    starts_at: datetime
    ends_at: datetime | None
    overlap: int
    catch_up: int
    window_ms: int
    paused: bool
    source: str


class Schedule(NamedTuple):
    """A schedule, and how far it has come."""

    key: ScheduleKey
    spec: ScheduleSpec
    handled_at: datetime  # ticks up to here are settled
    next_at: datetime | None
    waiting_tick: datetime | None
    last_job: JobId | None
    created_at: datetime
    updated_at: datetime


class PastRun(NamedTuple):
    tick: datetime
    cause: int
    outcome: int
    job: JobId | None
    recorded_at: datetime
