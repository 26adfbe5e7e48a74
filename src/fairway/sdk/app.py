"""An app: a name, the way to the server, and the job types a program offers.

    app = App("scoring")

Making one opens no connection, starts no thread and reads no file; the first enqueue does. The
worker reads `app.jobs`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from fairway.core.errors import Conflict
from fairway.core.events.event_gap import LogItem
from fairway.sdk.client.backend import Backend, testing_backend
from fairway.sdk.client.flow_door import FlowDoor
from fairway.sdk.client.handle import blocking_run
from fairway.sdk.client.run_door import RunDoor
from fairway.sdk.durations import Duration, seconds_of
from fairway.sdk.handler.context import running
from fairway.sdk.hooks import AroundEnqueue, AroundRun, Hooks, OnDeath, OnFailure, OnWorker
from fairway.sdk.http.settings import ClientSettings, find_settings
from fairway.sdk.job import AsyncJob, Job, JobOptions, SyncJob
from fairway.sdk.loading import NotAnApp, load_object, plainly
from fairway.sdk.options import refuse_unknown
from fairway.sdk.schedule import Declared, ScheduleOptions

if TYPE_CHECKING:
    from fairway.sdk.bulk import Bulk
    from fairway.sdk.client.client import Client
    from fairway.sdk.webhooks import Webhooks

P = ParamSpec("P")
R = TypeVar("R")
AnyJob = TypeVar("AnyJob", bound=Job[..., Any])


AroundRunT = TypeVar("AroundRunT", bound=AroundRun)
AroundEnqueueT = TypeVar("AroundEnqueueT", bound=AroundEnqueue)
OnFailureT = TypeVar("OnFailureT", bound=OnFailure)
OnDeathT = TypeVar("OnDeathT", bound=OnDeath)
OnWorkerT = TypeVar("OnWorkerT", bound=OnWorker)


def _with_a_name(init: Callable[P, None]) -> Callable[P, None]:
    """Python's own words would be about an __init__ that nobody wrote."""

    @wraps(init)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        if len(args) < 2 and "name" not in kwargs:
            raise TypeError('an App needs a name, which tells its schedules apart: App("shop")')
        init(*args, **kwargs)

    return checked


class App:
    """The job types of one program, by name, and the door they are handed in at."""

    @_with_a_name
    def __init__(
        self,
        name: str,
        *,
        url: str | None = None,
        api_key: str | None = None,
        patience: Duration = "15s",
    ) -> None:
        """`patience` is how long a call keeps trying to reach a server that is not there."""
        self.name = name
        self.jobs: dict[str, Job[..., Any]] = {}
        self.schedules: dict[str, Declared] = {}
        self.hooks = Hooks()
        self._url = url
        self._api_key = api_key
        self._patience_seconds = seconds_of(patience)

    @property
    def job(self) -> JobDecorator:
        """`@app.job` or `@app.job(pool=…, timeout=…)` on a function makes it a job type."""
        return JobDecorator(self, {})

    # -- hooks: each is called with one value, and is given back as it is -------------------------

    def around_run(self, hook: AroundRunT) -> AroundRunT:
        """A generator function of a Ctx that yields once: what is before it and after it."""
        self.hooks.around_run.append(hook)
        return hook

    def around_enqueue(self, hook: AroundEnqueueT) -> AroundEnqueueT:
        """A generator function of an `Enqueueing` that yields once."""
        self.hooks.around_enqueue.append(hook)
        return hook

    def on_failure(self, hook: OnFailureT) -> OnFailureT:
        """Called with a `RunFailure` after each run that failed, where it ran."""
        self.hooks.on_failure.append(hook)
        return hook

    def on_death(self, hook: OnDeathT) -> OnDeathT:
        """Called with a `JobDeath` by the worker whose report made the job a dead one."""
        self.hooks.on_death.append(hook)
        return hook

    def on_worker_start(self, hook: OnWorkerT) -> OnWorkerT:
        """Called in each process that runs jobs, before the first one."""
        self.hooks.on_worker_start.append(hook)
        return hook

    def on_worker_stop(self, hook: OnWorkerT) -> OnWorkerT:
        """Called in each process that runs jobs, when it is told to end."""
        self.hooks.on_worker_stop.append(hook)
        return hook

    def schedule(
        self,
        cron: str | None = None,
        *,
        every: Duration | None = None,
        tz: str = "UTC",
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleDecorator:
        """`@app.schedule("0 9 * * MON-FRI", tz="Europe/Lisbon")` on a job or a function.

        With `every="90s"` instead, at a fixed interval. The server reads the expression when the
        schedules are synced.
        """
        refuse_unknown(options, ScheduleOptions, "@app.schedule")
        if (cron is None) == (every is None):
            raise ValueError("give either a cron expression or every=")
        declared = partial(Declared, cron=cron, every=every, timezone=tz)
        return ScheduleDecorator(self, declared, options)

    async def async_schedules(self, *, prune: bool = False) -> list[str]:
        """Bring the declared schedules to the server; `prune` deletes those no longer declared.

        Answers what was done, a line each. Under a testing mode that is open here they fire when
        its clock is turned.
        """
        source = f"app:{self.name}"
        done = []
        if (mode := testing_backend.get()) is not None:
            for declared in self.schedules.values():
                is_new = mode.keep_schedule(declared.name, declared.request(source), declared.job)
                done.append(f"{'made' if is_new else 'updated'} {declared.name}")
            gone = mode.drop_schedules(source, self.schedules) if prune else []
            return done + [f"deleted {name}" for name in gone]
        for declared in self.schedules.values():
            request = declared.request(source)
            is_new = await self.client.put_schedule(declared.name, request)
            done.append(f"{'made' if is_new else 'updated'} {declared.name}")
        if prune:
            for name in await self.client.schedule_names(source):
                if name not in self.schedules:
                    await self.client.delete_schedule(name)
                    done.append(f"deleted {name}")
        return done

    def sync_schedules(self, *, prune: bool = False) -> list[str]:
        return blocking_run(self.async_schedules(prune=prune))

    def aevents(
        self,
        *,
        after: int | str | None = None,
        kind: str | Sequence[str] = (),
        type: str | Sequence[str] = (),
        job: str | None = None,
    ) -> AsyncIterator[LogItem]:
        """As `events`, for async code."""
        if testing_backend.get() is not None:
            raise Conflict("a testing mode keeps no event log; ask a handle for a job's events")
        from fairway.sdk.logs.event_log import Wanted  # as `client` below

        return self.client.event_log.follow(after, Wanted(kind, type, job))

    def events(
        self,
        *,
        after: int | str | None = None,
        kind: str | Sequence[str] = (),
        type: str | Sequence[str] = (),
        job: str | None = None,
    ) -> Iterator[LogItem]:
        """What happens to this tenant's jobs, in order and without end.

        `after` is the `resume_after` of the last event you have (its position, unless the tenant
        has several shards), 0 for all that are kept; left out, from now on. `kind` is one or more
        such as `"job.dead"` and `"circuit.*"`, `type` job types. A connection that breaks goes on
        where it was, at any server; events that were deleted meanwhile are an `EventGap`.
        """
        from fairway.sdk.client.blocking import iterate  # as `client` below

        return iterate(self.aevents(after=after, kind=kind, type=type, job=job))

    @staticmethod
    def load(target: str) -> App:
        """The app that `"module:app"` or `"path.py:app"` names; LoadError says why it cannot be."""
        with plainly(target):
            found = load_object(target)
        if not isinstance(found, App):
            raise NotAnApp(f"{target} is a {type(found).__name__}, not a fairway.App")
        return found

    @cached_property
    def settings(self) -> ClientSettings:
        """Where the server is, found on first use."""
        return find_settings(self._url, self._api_key)

    @cached_property
    def client(self) -> Client:
        # Imported here: the HTTP library is the larger part of what an import would cost.
        from fairway.sdk.client.client import Client

        return Client(
            self.settings,
            user_agent=f"fairway-sdk ({self.name})",
            patience_seconds=self._patience_seconds,
        )

    @cached_property
    def webhooks(self) -> Webhooks:
        """Where this tenant's events are sent."""
        from fairway.sdk.webhooks import Webhooks

        return Webhooks(self)

    @cached_property
    def bulk(self) -> Bulk:
        """Acts on many of this tenant's jobs."""
        from fairway.sdk.bulk import Bulk

        return Bulk(self)

    def door(self) -> Backend:
        """The run that goes on here; else the testing mode that is open here, else the client."""
        ctx = running()
        return self._door_below() if ctx is None else RunDoor(ctx.follow_ups, self._door_below)

    def flow_door(self) -> FlowDoor:
        """The testing mode that is open here; else over HTTP, by whoever has a tenant's key."""
        if running() is not None:
            raise Conflict(
                "chains, groups and after= cannot be handed in inside a run; start a follow-up"
                " job with enqueue, or hand the flow in from where the run was enqueued"
            )
        mode = testing_backend.get()
        return self.client.flows if mode is None else mode.flows

    def _door_below(self) -> Backend:
        return testing_backend.get() or self.client

    def register(self, job: Job[..., Any]) -> None:
        if job.name in self.jobs:
            raise ValueError(f"{self.name} already has a job named {job.name!r}; give it a name=")
        self.jobs[job.name] = job

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        if "client" in vars(self):
            await self.client.aclose()

    @asynccontextmanager
    async def lifespan(self, web: object = None) -> AsyncIterator[None]:
        """`FastAPI(lifespan=app.lifespan)`, or Starlette's: connections end with the program."""
        try:
            yield
        finally:
            await self.aclose()

    def close(self) -> None:
        """Close the connections of the synchronous half."""
        blocking_run(self.aclose())

    def __repr__(self) -> str:
        return f"<App {self.name}: {len(self.jobs)} job types>"


class JobDecorator:
    """Turns a function into a job type, with or without options given first."""

    def __init__(self, app: App, options: JobOptions) -> None:
        self._app = app
        self._options = options

    # Every coroutine function is also a function, so the first two overlap; the order decides.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncJob[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> SyncJob[P, R]: ...
    @overload
    def __call__(self, /, **options: Unpack[JobOptions]) -> JobDecorator: ...

    def __call__(
        self, function: Callable[..., Any] | None = None, /, **options: Unpack[JobOptions]
    ) -> Job[..., Any] | JobDecorator:
        if function is None:
            refuse_unknown(options, JobOptions, "@app.job")
            return JobDecorator(self._app, {**self._options, **options})
        kind = AsyncJob if inspect.iscoroutinefunction(function) else SyncJob
        job: Job[..., Any] = kind(self._app, function, **self._options)
        self._app.register(job)
        return job


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
