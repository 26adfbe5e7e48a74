"""Recurring schedules that a program declares beside its jobs.

    @app.schedule("0 9 * * MON-FRI", tz="Europe/Lisbon")
    @app.job
    def report() -> None: ...

A declaration is only that: it starts nothing and asks nobody. `fairway up`, `fairway schedules
sync` or `app.sync_schedules()` bring it to the server, which reads the expression and may refuse.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict

import msgspec
from msgspec import Raw

from fairway.sdk.durations import Duration, seconds_of
from fairway.sdk.job import Job
from fairway.sdk.times import with_zone
from fairway.wire.schedules import CatchUp, Overlap, ScheduleRequest


class ScheduleOptions(TypedDict, total=False):
    """What `@app.schedule(...)` takes besides when."""

    name: str  # the job's unless told otherwise
    args: dict[str, Any]  # the handler's arguments, by name
    tick: str  # the argument that gets the tick
    overlap: Overlap  # what a tick does while the last run is not over
    catch_up: CatchUp  # which of the missed ticks run after an outage
    catch_up_window: Duration  # how far back, for `all`
    jitter: Duration  # how far runs of one tick are spread
    starts_at: datetime  # no tick before
    ends_at: datetime  # none after


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A schedule of an app."""

    name: str
    job: Job[..., Any]
    cron: str | None
    every: Duration | None
    timezone: str
    options: ScheduleOptions

    def request(self, source: str) -> ScheduleRequest:
        """As it goes over the wire; InvalidArguments when the arguments do not fit the job."""
        options, job = self.options, self.job
        given: dict[str, Any] = {
            name: seconds_of(options[key])  # type: ignore[literal-required]  # of the two below
            for name, key in _SPANS.items()
            if key in options
        }
        given |= {key: options[key] for key in _PLAIN if key in options}
        for key in _MOMENTS:
            if key in options:
                given[key] = with_zone(options[key], key)
        return ScheduleRequest(
            cron=self.cron,
            every_seconds=None if self.every is None else seconds_of(self.every),
            timezone=self.timezone,
            type=job.name,
            payload=Raw(self._payload()),
            pool=job.pool,
            priority=job.priority,
            timeout_seconds=job.timeout_seconds,
            tick_argument=options.get("tick"),
            source=source,
            **given,
        )

    def _payload(self) -> bytes:
        args = self.options.get("args", {})
        if "tick" in self.options:  # one argument is still to come: the worker checks them all
            return msgspec.json.encode(args)
        return self.job.codec.encode_arguments((), args)


_SPANS = {"catch_up_window_seconds": "catch_up_window", "jitter_seconds": "jitter"}
_PLAIN: tuple[Literal["overlap", "catch_up"], ...] = ("overlap", "catch_up")
_MOMENTS: tuple[Literal["starts_at", "ends_at"], ...] = ("starts_at", "ends_at")
