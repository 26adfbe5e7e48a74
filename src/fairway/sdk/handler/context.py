"""What a running handler knows of its job, and how it speaks while it runs.

A `Ctx` reaches a handler in one of two ways. As a parameter:

    @app.job()
    async def score(cv_id: str, ctx: Ctx = CTX) -> float: ...

It is found by its annotation, under any name and at any place. The default `CTX` tells type
checkers that callers of `enqueue` need not pass it; without the default the job runs just as
well, but checkers will ask `enqueue` for it. Or, anywhere below the handler, by `Ctx.current()`.

A Ctx decides nothing and does no I/O: it hands what it is told to a sink, which whoever runs the
job provides. All of it may be called from any thread.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterable, Iterator, MutableMapping, Sized
from concurrent.futures import Future
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct

from fairway.sdk.handler.checkpoint import Saving, already_saved, saving
from fairway.sdk.handler.follow_ups import NONE_ANY_MORE, RunFollowUps
from fairway.wire.bounds import PROGRESS_BYTES_MAX

if TYPE_CHECKING:
    from fairway.sdk.handler.threads import ThreadRun

Item = TypeVar("Item")
P = ParamSpec("P")
Handed = TypeVar("Handed", covariant=True)

TRACK_PERIOD_SECONDS = 0.5
JOB_LOGGERS = "fairway.job."  # before the name of a type: the logger of its lines
LOG_WORDS = frozenset({"exc_info", "stack_info", "stacklevel", "extra"})  # of `logging`
PROGRESS_TEXT_MAX = 600  # characters of one that is cut, each of which takes six bytes at most


class CtxSink(Protocol):
    """Where a running job's words go. Called from any thread, as often as the handler likes.

    A sink with a true `draining` belongs to a worker that ends soon.
    """

    def progress(self, job_id: str, progress: bytes) -> None:
        """Keep the last `{"done", "total", "text"}`; older ones may be dropped."""

    def log(self, ctx: Ctx, level: int, line: str, logger: str = "") -> None:
        """One line of this run's log, at a level of `logging`; the logger, if not `ctx.log`."""

    def checkpoint(self, job_id: str, epoch: int, number: int, state: bytes) -> Future[None]:
        """Save the n-th state of this run, which is JSON; done when it is safe."""


class Enqueues(Protocol[P, Handed]):
    """A job type, or one with options."""

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handed: ...


class SilentSink:
    """Drops everything."""

    def progress(self, job_id: str, progress: bytes) -> None:
        return None

    def log(self, ctx: Ctx, level: int, line: str, logger: str = "") -> None:
        return None

    def checkpoint(self, job_id: str, epoch: int, number: int, state: bytes) -> Future[None]:
        return already_saved()


SILENT = SilentSink()


class RunFacts(Struct, frozen=True, gc=False):
    """What the lease says about this run. `attempt` and `delivery` count from one."""

    job_id: str
    type: str
    tenant: str = ""
    attempt: int = 1
    delivery: int = 1
    timeout_seconds: float | None = None
    epoch: int = 0
    checkpoint: bytes | None = None  # the state that the run before this one saved last
    sample: float | None = None  # spreads the pause after a failure; None: chance does
    now_ms: int | None = None  # of a clock that is turned by hand; else it is now
    traceparent: str | None = None  # of the span that this run is, by W3C trace context


class Ctx:
    """One run of one job.

    `job_id` is the same for all runs of the job, `attempt` and `delivery` count them. Besides there
    are `type`, `tenant` and `timeout_seconds`; and `traceparent`, if the job belongs to a trace.
    """

    # What most runs never change has its value on the class: tens of thousands begin a second.
    thread: ThreadRun | None = None  # the call under way, when the job runs in a thread
    _ends_at = 0.0
    _cancelled = False
    error: BaseException | None = None  # how it ended, for hooks that want to know
    _checkpoints = 0
    sample: float | None = None
    traceparent: str | None = None
    _follow_ups: RunFollowUps | None = None  # once it wanted one

    def __init__(self, facts: RunFacts, sink: CtxSink = SILENT) -> None:
        self.job_id = facts.job_id
        self.type = facts.type
        self.tenant = facts.tenant
        self.attempt = facts.attempt
        self.delivery = facts.delivery
        self.timeout_seconds = facts.timeout_seconds
        if facts.timeout_seconds:
            self._ends_at = time.monotonic() + facts.timeout_seconds
        if facts.sample is not None:
            self.sample = facts.sample
        if facts.traceparent is not None:
            self.traceparent = facts.traceparent
        self._sink = sink
        self._now_ms = facts.now_ms
        self.epoch = facts.epoch
        self._checkpoint = facts.checkpoint

    @staticmethod
    def current() -> Ctx:
        """The Ctx of the job that runs here; RuntimeError when none does."""
        ctx = _current.get()
        if ctx is None:
            raise RuntimeError("no job is running here, so there is no Ctx")
        return ctx

    @property
    def first_attempt(self) -> bool:
        """Whether no run of it has failed yet."""
        return self.attempt == 1

    @property
    def deadline(self) -> datetime | None:
        """When the job's time limit passes, if it has one."""
        left = self.time_left()
        return None if left is None else datetime.fromtimestamp(time.time() + left, UTC)

    def time_left(self) -> float | None:
        """Seconds until the time limit, never below zero; None when there is no limit."""
        if self.timeout_seconds is None:
            return None
        return max(0.0, self._ends_at - time.monotonic())

    def cancelled(self) -> bool:
        """Whether somebody asked this job to stop. Loops in sync handlers should look."""
        return self._cancelled

    def draining(self) -> bool:
        """Whether the worker is about to end: checkpoint, and hand the job back."""
        return bool(getattr(self._sink, "draining", False))

    def should_stop(self) -> bool:
        """Cancelled or draining. A loop that looks here saves its state and raises HandBack."""
        return self._cancelled or self.draining()

    def ask_to_stop(self) -> None:
        """For whoever runs the job: makes `cancelled()` true."""
        self._cancelled = True

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Say how far the job is; the last word is shown to the tenant. A long text is cut."""
        if isinstance(text, str) and len(text) > PROGRESS_BYTES_MAX:
            text = text[:PROGRESS_TEXT_MAX]  # before it is encoded: it may have megabytes
        document = {"done": done, "total": total, "text": text}
        encoded = msgspec.json.encode(document)
        if len(encoded) > PROGRESS_BYTES_MAX:
            document["text"] = str(text)[:PROGRESS_TEXT_MAX]
            encoded = msgspec.json.encode(document)
        if len(encoded) > PROGRESS_BYTES_MAX:
            raise ValueError(f"progress has {len(encoded)} bytes; at most {PROGRESS_BYTES_MAX}")
        self._sink.progress(self.job_id, encoded)

    def track(self, items: Iterable[Item], text: str = "", *, start: int = 0) -> Iterator[Item]:
        """Yield each item and report progress on the way, at most twice a second.

        `start` is how many were done before, by a run that saved a checkpoint: counting goes on.
        """
        total = start + len(items) if isinstance(items, Sized) else None
        reported_at, done = float("-inf"), start
        for item in items:
            if time.monotonic() - reported_at >= TRACK_PERIOD_SECONDS:
                reported_at = time.monotonic()
                self.progress(done, total, text)
            yield item
            done += 1
        self.progress(done, total, text)

    def checkpoint(self, state: Any) -> Saving:
        """Save what the next run needs to go on from here, should this one be cut short.

        `state` is anything that JSON can hold. In a coroutine: `await ctx.checkpoint(state)`. In a
        thread or a process of its own the call returns when the state is safe. CheckpointFailed
        when it cannot be saved now, CheckpointRefused when it never can; the one before it still
        stands.
        """
        text = msgspec.json.encode(state)
        self._checkpoints += 1
        saved = self._sink.checkpoint(self.job_id, self.epoch, self._checkpoints, text)
        self._checkpoint = text
        return saving(saved)

    def load_checkpoint(self, kind: Any = Any) -> Any:
        """The state that was saved last, by this run or the one before; None when there is none.

        With a type, as that type: `ctx.load_checkpoint(Progress)`.
        """
        if self._checkpoint is None:
            return None
        return msgspec.json.decode(self._checkpoint, type=kind)

    def enqueue(self, job: Enqueues[P, Handed], *args: P.args, **kwargs: P.kwargs) -> Handed:
        """Start a job when this run succeeds: a job type, or one with options, and its arguments.

        As `job.enqueue(…)` inside a run, and also from threads that the handler made by itself.
        """
        entered = enter(self)
        try:
            return job.enqueue(*args, **kwargs)
        finally:
            leave(entered)

    @property
    def follow_ups(self) -> RunFollowUps:
        """For whoever hands jobs in: what this run wants to start."""
        with _beginning:
            if self._follow_ups is None:
                now_ms = time.time_ns() // 1_000_000 if self._now_ms is None else self._now_ms
                self._follow_ups = RunFollowUps(self.job_id, self.epoch, now_ms)
            return self._follow_ups

    def take_follow_ups(self) -> RunFollowUps | None:
        """For whoever runs the job: it is over. None when it wanted none, as most do."""
        wanted, self._follow_ups = self._follow_ups, self._follow_ups or NONE_ANY_MORE
        return wanted

    @property
    def log(self) -> JobLog:
        """A logger whose lines belong to this job.

        From `info` on they stand in the worker's log with the job, its type and its tenant: some
        lines a second, and long ones are cut. An app that sets up `logging` by itself gets them
        there instead, as lines of `fairway.job.<type>` with a `job_id`. What other loggers say
        while the job runs is told in the same way.
        """
        return JobLog(self, self._sink)

    def note_error(self, error: BaseException) -> None:
        """For whoever runs the job: it ended with this."""
        self.error = error

    def hear(self, record: logging.LogRecord) -> None:
        """For whoever runs the job: some other logger said this while it ran."""
        line = _message(record) + _raised(record.exc_info)
        self._sink.log(self, record.levelno, line, record.name)


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """Sends each line to the run's sink, whatever the level, and on to stdlib logging."""

    def __init__(self, ctx: Ctx, sink: CtxSink) -> None:
        super().__init__(logging.getLogger(JOB_LOGGERS + ctx.type), {"job_id": ctx.job_id})
        self._ctx = ctx
        self._sink = sink

    def __call__(self, msg: object, /, *args: object, **kwargs: Any) -> None:
        """`ctx.log("…")` is `ctx.log.info("…")`."""
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        self.log(logging.INFO, msg, *args, **kwargs)

    def log(self, level: int, msg: object, /, *args: object, **kwargs: Any) -> None:  # type: ignore[override]  # a word may be called level
        """As of `logging`; other words by name stand behind the line: no line fails a job."""
        if named := {name: kwargs.pop(name) for name in kwargs.keys() - LOG_WORDS}:
            said = " ".join(f"{name}={_shown(named[name])}" for name in sorted(named))
            msg, args = f"{_line(msg, args)} {said}", ()
        self._sink.log(self._ctx, level, _line(msg, args) + _raised(kwargs.get("exc_info")))
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        super().log(level, msg, *args, **kwargs)

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**(self.extra or {}), **kwargs.get("extra", {})}
        return msg, kwargs


def _line(msg: object, args: tuple[object, ...]) -> str:
    return _message(logging.LogRecord("", 0, "", 0, msg, args, None))


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # of a class whose own text fails
        return f"<{type(value).__name__}>"


def _message(record: logging.LogRecord) -> str:
    """As `logging` would write it; words that do not fit their places fail no job either."""
    try:
        return record.getMessage()
    except Exception:
        return f"{record.msg} {record.args}"


def _raised(given: Any) -> str:
    """The error that `ctx.log.exception` is about, in a few words."""
    error = given[1] if isinstance(given, tuple) else given
    if error and not isinstance(error, BaseException):
        error = sys.exc_info()[1]
    if not isinstance(error, BaseException):
        return ""
    try:
        return f" ({type(error).__name__}: {error})"
    except Exception:  # an error whose own text fails
        return f" ({type(error).__name__})"


_current: ContextVar[Ctx | None] = ContextVar("fairway_ctx", default=None)
_beginning = threading.Lock()  # held for the first follow-up of a run


current_ctx = _current.get  # of the job that runs here; None when none does
enter = _current.set  # from here on `Ctx.current()` is this one; answers what `leave` takes
leave = _current.reset
running = _current.get  # the Ctx of the job that runs here, or None


class _CurrentCtx:
    """Stands in for the Ctx of whatever job runs when it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(Ctx.current(), name)

    def __repr__(self) -> str:
        return "CTX"


#: The default of a `ctx` parameter: "given by whoever runs the job".
CTX: Ctx = cast(Ctx, _CurrentCtx())
