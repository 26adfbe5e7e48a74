"""A job type: a plain function that can also be enqueued.

`Job[P, R]` keeps the function's parameters and its (awaited) result, so type checkers see the
arguments of `enqueue` and the type of what comes back. Calling the job calls the function.
It runs nothing by itself: workers and tests do, through `run.py`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Iterable
from functools import cached_property
from math import inf
from typing import (
    Any,
    Generic,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from fairway.core.pools import BY_NAME
from fairway.core.run.process_limits import CANCEL_GRACE_MS, UNLIMITED
from fairway.sdk.client.backend import HasDoor
from fairway.sdk.client.calls import PlainCall, TypedCall
from fairway.sdk.client.enqueue import (
    EnqueueOptions,
    Enqueuer,
    checked_pool,
    checked_priority,
)
from fairway.sdk.client.flows import Signature
from fairway.sdk.client.handle import Handle
from fairway.sdk.durations import Duration, milliseconds_of, seconds_of
from fairway.sdk.handler.codec import Codec, ForgetfulCodec, refuse_unnamed_parameters
from fairway.sdk.handler.outcomes import Retry
from fairway.sdk.key_limits import KeyLimits, Limit, Rate
from fairway.sdk.limits import Limits
from fairway.sdk.unique import Debounce, Unique, UniqueKey
from fairway.wire.job_type import TypeTerms
from fairway.wire.messages import JOB_TYPE_PATTERN, JOB_TYPE_WORDS

P = ParamSpec("P")
R = TypeVar("R")

RunMode = Literal["loop", "thread", "process"]
RUN_MODES: tuple[RunMode, ...] = ("loop", "thread", "process")


class JobOptions(TypedDict, total=False):
    """What `@app.job(...)` takes."""

    name: str  # the job type; the function's name unless told otherwise
    pool: str  # short, medium, long, or one of an operator's; short unless told otherwise
    timeout: Duration  # of each run; without one there is no limit
    soft_timeout: Duration  # when SoftTimeLimit is raised in the handler, before the timeout
    mode: RunMode  # by the pool, the limits and the function unless told otherwise
    priority: int  # 9 first … 0 last, among the tenant's own jobs
    #: Short for retry=Retry(attempts): how often the handler may raise. No bound for runs that end
    #: otherwise: one over its time limit is tried once more (`most`), a crash costs no attempt.
    attempts: int
    retry: Retry  # how often, on which errors, after which pauses
    limits: Limits  # of a process of its own
    cancel_grace: Duration  # from being asked to stop until it is stopped; 5 minutes
    runaway_after: Duration  # processor time without progress or checkpoint; 0 for never
    depends_on: str  # what it leans on, such as stripe
    warm_key: str  # workers that keep this ready are preferred: an image, a model
    ignore_result: bool  # nothing that it returns is kept: `result()` raises ResultIgnored
    version: str  # of the type; operators see it
    concurrency: Limit | list[Limit]  # so many runs at once, of the type or of a key
    rate: Rate | list[Rate]  # so many starts in a while, likewise
    unique: Unique  # one job of its kind at a time
    debounce: Debounce | Duration  # of many in a while the last one
    schema: dict[str, Any]  # JSON Schema of the arguments, checked when a job is submitted


class Job(Generic[P, R]):
    """One job type of an app."""

    def __init__(
        self, app: HasDoor, function: Callable[..., Any], **options: Unpack[JobOptions]
    ) -> None:
        self.app = app
        self.function = function
        self.name = _checked_name(options.get("name", function.__name__))
        refuse_unnamed_parameters(function, self.name)
        self.is_async = inspect.iscoroutinefunction(function)
        self.pool = checked_pool(options.get("pool", "short"))
        self.priority = checked_priority(options.get("priority", 5))
        self.timeout_seconds = seconds_of(options["timeout"]) if "timeout" in options else None
        self.soft_timeout_seconds = _checked_soft(options, self.timeout_seconds)
        self.retry = _chosen_retry(options)
        self.limits = options["limits"].terms if "limits" in options else UNLIMITED
        self.run_mode = _chosen_mode(options, self.pool, self.is_async)
        self.is_mode_chosen = "mode" in options or "limits" in options
        self.ignores_result = options.get("ignore_result", False)
        self.cancel_grace_ms = _milliseconds(options.get("cancel_grace"), CANCEL_GRACE_MS)
        self.runaway_after_ms = _milliseconds(options.get("runaway_after"), None)
        self.key_limits = KeyLimits(
            self.name, function, options.get("concurrency"), options.get("rate")
        )
        self.unique_key = UniqueKey(
            self.name, function, options.get("unique"), options.get("debounce")
        )
        self.terms = self._terms(options)
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__module__, self.__wrapped__ = function.__module__, function

    def _terms(self, options: JobOptions) -> TypeTerms:
        """What the platform is told of it, as its workers say it."""
        seconds = self.timeout_seconds
        return TypeTerms(
            name=self.name,
            attempts_max=self.retry.attempts,
            pool=self.pool,
            timeout_ms=None if seconds is None else round(seconds * 1000),
            dependency=options.get("depends_on", ""),
            warm_key=options.get("warm_key", ""),
            version=options.get("version", ""),
            schema=options.get("schema"),
            **self.retry.bounds,
        )

    @cached_property
    def codec(self) -> Codec:
        """Made on first use; a TypeError here means that the annotations cannot be resolved."""
        kind = ForgetfulCodec if self.ignores_result else Codec
        return kind(self.function, self.name)

    @property
    def wants_ctx(self) -> str | None:
        """The name of the parameter that takes the Ctx, if there is one."""
        return self.codec.ctx_name

    @property
    def attempts_max(self) -> int:
        """Tries before the job is given up, as far as this side knows."""
        pool = BY_NAME.get(self.pool)
        return self.retry.attempts or (pool.attempts_max if pool else 5)

    def decode_arguments(self, payload: bytes) -> dict[str, Any]:
        return self.codec.decode_arguments(payload)

    def encode_result(self, value: Any) -> bytes:
        return self.codec.encode_result(value)

    def options(self, **options: Unpack[EnqueueOptions]) -> Enqueuer[P, R]:
        """The same job with another word about where, when and how it runs."""
        return Enqueuer(self, options)

    @cached_property
    def _as_declared(self) -> Enqueuer[P, R]:
        """Kept: to look at no options again for every job takes as long as to hand one in."""
        return self.options()

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Hand one in, with the function's own arguments; back when it is on disk."""
        return self._as_declared.enqueue(*args, **kwargs)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        return await self._as_declared.aenqueue(*args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> TypedCall[P]:
        """The arguments of one job, for `enqueue_many`; `.keyed(…)` gives it a key of its own."""
        return TypedCall(args, kwargs)

    def enqueue_many(self, calls: Iterable[PlainCall | TypedCall[P]]) -> list[Handle[R]]:
        return self.options().enqueue_many(calls)

    async def aenqueue_many(self, calls: Iterable[PlainCall | TypedCall[P]]) -> list[Handle[R]]:
        """Each a tuple of arguments, a dict of them, or `job.call(…)`; BatchRefused if any is.
        Up to 500 are queued in their order; more go in parts, and parts may overtake each other.
        """
        return await self.options().aenqueue_many(calls)

    def s(self, *args: Any, **kwargs: Any) -> Signature:
        """A call for a chain or a group, which is not made yet."""
        return self.options().s(*args, **kwargs)

    def handle(self, job_id: str) -> Handle[R]:
        """The handle of a job of this type that was enqueued before."""
        return Handle(self.app.door(), job_id, self.codec.decode_kept)

    def __repr__(self) -> str:
        return f"<Job {self.name} of {self.app.name}>"


class AsyncJob(Job[P, R]):
    """A job whose function is a coroutine function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        called: Coroutine[Any, Any, R] = self.function(*args, **kwargs)
        return called


class SyncJob(Job[P, R]):
    """A job whose function is an ordinary function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        returned: R = self.function(*args, **kwargs)
        return returned


def _checked_name(name: str) -> str:
    if not re.fullmatch(JOB_TYPE_PATTERN, name):
        raise ValueError(f"{name!r} is no name for a job: it must have {JOB_TYPE_WORDS}")
    return name


@overload
def _milliseconds(duration: Duration | None, default: int) -> int: ...
@overload
def _milliseconds(duration: Duration | None, default: None) -> int | None: ...
def _milliseconds(duration: Duration | None, default: int | None) -> int | None:
    return default if duration is None else milliseconds_of(duration)


def _checked_soft(options: JobOptions, timeout_seconds: float | None) -> float | None:
    if "soft_timeout" not in options:
        return None
    seconds = seconds_of(options["soft_timeout"])
    if not 0 < seconds < (timeout_seconds or inf):
        raise ValueError(
            f"soft_timeout must be longer than nothing and shorter than timeout, not {seconds:g} s"
        )
    return seconds


def _chosen_retry(options: JobOptions) -> Retry:
    if "attempts" in options and "retry" in options:
        raise ValueError("give either attempts= or retry=, not both")
    return options.get("retry") or Retry(options.get("attempts"))


def _chosen_mode(options: JobOptions, pool: str, is_async: bool) -> RunMode:
    """Long and limited jobs get a process; else a coroutine the loop, a function a thread."""
    mode = options.get("mode")
    if mode is not None:
        if mode not in RUN_MODES:
            raise ValueError(f"mode must be one of {', '.join(RUN_MODES)}, not {mode!r}")
        if "limits" in options and mode != "process":
            raise ValueError(f"limits need mode='process', not {mode!r}")
        return mode
    if pool == "long" or "limits" in options:
        return "process"
    return "loop" if is_async else "thread"
