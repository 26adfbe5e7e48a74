"""What an app wants to happen around its jobs: plain functions, each called with one typed value.

What stands around a run is a part of it: what it raises is how the run ended. All other hooks look
on: what they raise is logged, and changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from fairway.sdk.handler.context import Ctx
from fairway.wire.messages import JobRequest

log = logging.getLogger("fairway.hooks")


class RunFailure(NamedTuple):
    """A run that failed; whether the job is tried again the platform decides."""

    ctx: Ctx
    error: BaseException


class JobDeath(NamedTuple):
    """A job that is dead: its last run failed, and it is not tried again."""

    job_id: str
    type: str
    tenant: str
    attempt: int
    failure: str  # the failure class
    error: dict[str, Any]  # {type, message, stack}


class Enqueueing(NamedTuple):
    """Jobs that are being handed in, in one call."""

    requests: Sequence[JobRequest]


AroundRun: TypeAlias = Callable[[Ctx], Iterator[None]]
AroundEnqueue: TypeAlias = Callable[[Enqueueing], Iterator[None]]
OnFailure: TypeAlias = Callable[[RunFailure], object]
OnDeath: TypeAlias = Callable[[JobDeath], object]
OnWorker: TypeAlias = Callable[[], object]
Value = TypeVar("Value")


class Hooks:
    """Those of one app, in the order in which they were declared."""

    def __init__(self) -> None:
        self.around_run: list[AroundRun] = []
        self.around_enqueue: list[AroundEnqueue] = []
        self.on_failure: list[OnFailure] = []
        self.on_death: list[OnDeath] = []
        self.on_worker_start: list[OnWorker] = []
        self.on_worker_stop: list[OnWorker] = []

    @contextmanager
    def run(self, ctx: Ctx) -> Iterator[None]:
        """Around a run. None of them makes a success of a failure: it may raise another error."""
        raised: BaseException | None = None
        with ExitStack() as stack:
            for hook in self.around_run:
                stack.enter_context(_opened(hook, ctx))
            try:
                yield
            except BaseException as error:
                raised = error
                raise
        if raised is not None:  # somebody caught it and said nothing
            raise raised

    @contextmanager
    def enqueue(self, requests: Sequence[JobRequest]) -> Iterator[None]:
        """Around a call that hands jobs in."""
        given = Enqueueing(requests)
        opened = [_opened(hook, given) for hook in self.around_enqueue]
        entered = [one for one in opened if _quietly(one.__enter__)]
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            facts = (type(error), error, error.__traceback__) if error else (None, None, None)
            for one in reversed(entered):
                _quietly(partial(one.__exit__, *facts), error)

    def failed(self, failure: RunFailure) -> None:
        _call_all(self.on_failure, failure)

    def died(self, death: JobDeath) -> None:
        _call_all(self.on_death, death)

    def worker_started(self) -> None:
        for hook in self.on_worker_start:
            _quietly(hook)

    def worker_stops(self) -> None:
        for hook in self.on_worker_stop:
            _quietly(hook)


def _opened(hook: Callable[[Value], Iterator[None]], given: Value) -> AbstractContextManager[None]:
    return contextmanager(hook)(given)


def _call_all(hooks: Sequence[Callable[[Value], object]], given: Value) -> None:
    for hook in hooks:
        _quietly(partial(hook, given))


def _quietly(call: Callable[[], object], known: BaseException | None = None) -> bool:
    """Whether it went well; what it raises is told in the log, and nowhere else."""
    try:
        call()
    except (Exception, SystemExit) as error:
        if error is not known:
            log.exception("a hook failed")
        return False
    return True
