"""Recurring schedules that a program declares beside its jobs.

    @app.schedule("0 9 * * MON-FRI", tz="Europe/Lisbon")
    @app.job
    def report() -> None: ...

A declaration is only that: it starts nothing and asks nobody. `fairway up`, `fairway schedules
sync` or `app.sync_schedules()` bring it to the server, which reads the expression and may refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypedDict, TypeVar, overload

import msgspec
from msgspec import Raw

from fairway.sdk.durations import Duration, seconds_of
from fairway.sdk.job import AsyncJob, Job, SyncJob
from fairway.sdk.times import with_zone
from fairway.wire.schedules import CatchUp, Overlap, ScheduleRequest

if TYPE_CHECKING:
    from fairway.sdk.app import App

P = ParamSpec("P")
R = TypeVar("R")
AnyJob = TypeVar("AnyJob", bound=Job[..., Any])


class ScheduleOptions(TypedDict, total=False):
    """What `@app.schedule(...)` takes besides when."""

    name: str  # the job's unless told otherwise
    args: dict[str, Any]  # the handler's arguments, by name
    tick: str  # the argument that gets the tick
    overlap: Overlap
    catch_up: CatchUp
    catch_up_window: Duration
    jitter: Duration
    starts_at: datetime
    ends_at: datetime


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


class ScheduleDecorator:
    """Puts a job, or a function that becomes one, on a schedule."""

    def __init__(
        self, app: App, declared: Callable[..., Declared], options: ScheduleOptions
    ) -> None:
        self._app = app
        self._declared = declared  # but for its name and its job
        self._options = options

    @overload
    def __call__(self, job: AnyJob, /) -> AnyJob: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]  # the order decides, as for jobs
        self, job: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncJob[P, R]: ...
    @overload
    def __call__(self, job: Callable[P, R], /) -> SyncJob[P, R]: ...

    def __call__(self, job: Any, /) -> Any:
        made: Job[..., Any] = job if isinstance(job, Job) else self._app.job(job)
        name = self._options.get("name", made.name.replace(":", "-"))
        if name in self._app.schedules:
            raise ValueError(f"{self._app.name} already has a schedule named {name!r}")
        self._app.schedules[name] = self._declared(name=name, job=made, options=self._options)
        return made
