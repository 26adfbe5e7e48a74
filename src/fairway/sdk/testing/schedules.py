"""Schedules under test: when the test's clock is turned, their ticks make jobs.

`app.sync_schedules()` brings them here, as it would to a server. Every tick that is passed makes
its job, oldest first; overlap, catch-up and spread are the server's, and need one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Raw

from fairway.core.scheduling.ticks import Every
from fairway.core.unix_time import from_unix_ms, to_unix_ms
from fairway.sdk.client.backend import Submission
from fairway.sdk.job import Job
from fairway.wire.messages import JobRequest
from fairway.wire.schedules import ScheduleRequest

TICKS_MAX = 10_000  # of one turn of the clock


@dataclass(frozen=True, slots=True)
class TestedSchedule:
    """A schedule since some moment of the test."""

    name: str
    request: ScheduleRequest
    job: Job[..., Any]
    since_ms: int

    def submissions(self, after_ms: int, until_ms: int) -> Iterator[tuple[int, Submission]]:
        """The jobs of the ticks after one moment up to another, each with its tick."""
        last_ms = until_ms
        if self.request.ends_at is not None:
            last_ms = min(until_ms, to_unix_ms(self.request.ends_at))
        for count, tick_ms in enumerate(self._ticks(after_ms)):
            if tick_ms > last_ms:
                return
            if count == TICKS_MAX:
                raise RuntimeError(
                    f"{self.name} has over {TICKS_MAX} ticks in one turn of the clock: turn it less"
                )
            yield tick_ms, self._submission(tick_ms)

    def _ticks(self, after_ms: int) -> Iterator[int]:
        wanted, begins_ms = self.request, self.since_ms
        if wanted.starts_at is not None:
            begins_ms = to_unix_ms(wanted.starts_at)
        if wanted.every_seconds is not None:
            return Every(round(wanted.every_seconds * 1000), begins_ms).after(after_ms)
        return _cron_ticks(wanted.cron or "", wanted.timezone, max(after_ms, begins_ms - 1))

    def _submission(self, tick_ms: int) -> Submission:
        wanted = self.request
        payload = bytes(wanted.payload)
        if wanted.tick_argument is not None:
            tick = from_unix_ms(tick_ms).isoformat().replace("+00:00", "Z")
            payload = msgspec.json.encode(
                {**msgspec.json.decode(payload), wanted.tick_argument: tick}
            )
        request = JobRequest(
            type=wanted.type,
            payload=Raw(payload),
            pool=wanted.pool,
            priority=wanted.priority,
            timeout_seconds=wanted.timeout_seconds,
            execute_at=from_unix_ms(tick_ms),
        )
        return Submission(self.job, request)


def _cron_ticks(expression: str, zone: str, after_ms: int) -> Iterator[int]:
    try:
        from cronsim import CronSim  # the server's; the SDK alone does without
    except ImportError:
        raise RuntimeError(
            "cron expressions under test need what a server reads them with:"
            " pip install 'fairway[server]'"
        ) from None
    wall = datetime.fromtimestamp(after_ms / 1000, UTC).astimezone(ZoneInfo(zone))
    return (to_unix_ms(tick.astimezone(UTC)) for tick in CronSim(expression, wall))
