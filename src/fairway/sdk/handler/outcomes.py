"""What a handler can say besides its result, and what each saying means on the wire.

    return value                     succeeded
    raise Fail("…")                  failed for good: no retry can help
    raise DependencyFailed("stripe") failed because something it leans on did; tried again soon
    return Snooze("5m")              run me again later; costs no attempt   (may be raised too)
    return Cancel("reason")          stop, this need not be done            (may be raised too)
    return HandBack()                asked to stop, so I do: another worker goes on (or raised)
    raise anything else              failed; tried again by the job's `Retry`

`outcome_of` is the one place that reads this table. It is pure: it neither logs nor looks at a
clock, and it never lets an error of its own escape: a result that cannot be encoded is a failure
too.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from fairway.core.errors import InvalidRequest
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.sdk.durations import Duration, milliseconds_of
from fairway.sdk.handler.pauses import MIDDLE_SAMPLE, Exponential, chosen_pauses
from fairway.sdk.handler.stacks import stack_of
from fairway.wire.bounds import DELAY_MS_MAX

BOUNDED = {  # classes with a bound of their own, and what it is called everywhere else
    "timeout": "timeouts_max",
    "resource": "resources_max",
    "dependency": "dependencies_max",
    "worker_crash": "deliveries_max",
}
STACK_BYTES_MAX = 8 * 1024
MESSAGE_BYTES_MAX = 2 * 1024
NAME_BYTES_MAX = 128  # of an error's type and of a dependency


class Fail(Exception):
    """The job can never succeed; it becomes a dead letter at once."""


class DependencyFailed(Exception):
    """Something the job leans on failed. `retry_after` is when it asked to be called again.

    ValueError for a time that is negative or no number; one of over a hundred years counts as that.
    """

    def __init__(self, name: str, message: str = "", *, retry_after: Duration = 0) -> None:
        super().__init__(name, message)
        self.name = _head(str(name), NAME_BYTES_MAX)
        self.message = message or f"{self.name} failed"
        self.delay_ms = milliseconds_of(retry_after, DELAY_MS_MAX)

    def __str__(self) -> str:
        return self.message


class ControlFlow(Exception):
    """What a handler may return or raise instead of a result."""


class Snooze(ControlFlow):
    """Run this job again after a while, a hundred years at most; costs no attempt."""

    def __init__(self, delay: Duration) -> None:
        super().__init__(delay)
        self.delay_ms = milliseconds_of(delay, DELAY_MS_MAX)


class Cancel(ControlFlow):
    """Stop here: the work is no longer wanted."""


class HandBack(ControlFlow):
    """Stop here because `ctx.should_stop()` said so.

    On a worker that drains the job goes back to its queue and costs no attempt; a job that
    somebody cancelled is cancelled. Nobody asked: a failure like any other.
    """


class TimeLimitPassed(Exception):
    """The job passed its time limit. Raised by whoever runs the handler, never by the handler."""


class SoftTimeLimit(Exception):
    """The job's `soft_timeout` passed: save what there is, and end before the time limit does it.

    Raised in the handler by whoever runs it. Left alone, it counts as a time limit that passed.
    """

    def __init__(self, message: str = "the soft time limit passed") -> None:
        super().__init__(message)


class Retry:
    """How a job is tried again: at most `attempts` times, `on` these errors, after `backoff`.

    `attempts` counts errors that the handler raised. `most` bounds the runs that end otherwise, by
    failure class, whatever the attempts: a job over its time limit, or over a limit of memory, is
    tried once more unless `most={"timeout": 1, "resource": 1}` says no. So `Retry(1)` alone is no
    promise of one run; and since a crash of a worker is never the job's fault, nothing is.

    An error outside `on` is final. The last pause of `backoff` repeats, or an `Exponential` grows;
    pauses are spread by ± 20 %, or by what `jitter` says: 0 for not at all. What is left out is
    decided by the platform's policy for the job's pool; it also keeps count of the attempts.
    """

    def __init__(
        self,
        attempts: int | None = None,
        *,
        on: tuple[type[Exception], ...] = (Exception,),
        backoff: Sequence[Duration] | Exponential = (),
        jitter: float | None = None,
        most: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        if attempts is not None and attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {attempts}")
        self.attempts = attempts
        self.on = on
        self.pauses = chosen_pauses(backoff, jitter)
        self.most = _checked_bounds(most)

    @property
    def bounds(self) -> dict[str, Any]:
        """`most`, by the names that the platform has for them."""
        return {BOUNDED[name]: number for name, number in self.most.items()}


def _checked_bounds(most: Mapping[str, int]) -> dict[str, int]:
    for name, number in most.items():
        if name not in BOUNDED:
            raise ValueError(f"most: {name!r} is none of {', '.join(BOUNDED)}")
        if number < 1:
            raise ValueError(f"most: {name} must be at least 1, not {number}")
    return dict(most)


_PLATFORM_POLICY = Retry()
_OVER_A_LIMIT = (errno.EFBIG, errno.EMFILE)  # a file too large, too many open files


def outcome_of(
    value: Any = None,
    error: BaseException | None = None,
    encode: Callable[[Any], bytes] = msgspec.json.encode,
    retry: Retry = _PLATFORM_POLICY,
    attempt: int = 1,
    sample: float = MIDDLE_SAMPLE,
) -> Outcome:
    """What a returned value, or an exception when there is one, means for the job.

    `sample` is uniform in [0, 1): it spreads the pause before the next try.
    """
    said = value if error is None else error
    if isinstance(said, ControlFlow):
        return _said(said)
    if error is not None:
        return _failed(error, retry, attempt, sample)
    return _succeeded(value, encode)


def encode_error(error: BaseException) -> bytes:
    """`{type, message, stack}` as JSON; the end of a long stack is kept, for that is the cause."""
    document = {
        "type": _head(type(error).__qualname__, NAME_BYTES_MAX),
        "message": _head(_text_of(error), MESSAGE_BYTES_MAX),
        "stack": _tail(stack_of(error, MESSAGE_BYTES_MAX), STACK_BYTES_MAX),
    }
    if isinstance(error, DependencyFailed):
        document["dependency"] = error.name
    return msgspec.json.encode(document)


def _said(control: ControlFlow) -> Outcome:
    if isinstance(control, Snooze):
        return Outcome(OutcomeKind.SNOOZED, delay_ms=control.delay_ms)
    if isinstance(control, HandBack):
        return Outcome(OutcomeKind.RETURNED, error=encode_error(control))
    return Outcome(OutcomeKind.CANCELLED, error=encode_error(control))


def _succeeded(value: Any, encode: Callable[[Any], bytes]) -> Outcome:
    try:
        return Outcome(OutcomeKind.SUCCEEDED, 0, encode(value))
    except Exception as error:  # the user's types may raise anything while they are encoded
        text = encode_error(error)
        return Outcome(OutcomeKind.FAILED, failure=FailureClass.PERMANENT, error=text)


def _failed(error: BaseException, retry: Retry, attempt: int, sample: float) -> Outcome:
    failure = _failure_class(error, retry)
    asked_ms = error.delay_ms if isinstance(error, DependencyFailed) else 0
    pause_ms = asked_ms or retry.pauses.pause_ms(attempt, sample)
    return Outcome(
        OutcomeKind.FAILED,
        failure=failure,
        error=encode_error(error),
        delay_ms=0 if failure is FailureClass.PERMANENT else min(pause_ms, DELAY_MS_MAX),
    )


def _failure_class(error: BaseException, retry: Retry) -> FailureClass:
    match error:
        # Arguments that do not fit the annotations will not fit them next time either.
        case Fail() | InvalidRequest():
            return FailureClass.PERMANENT
        case DependencyFailed():
            return FailureClass.DEPENDENCY
        case TimeLimitPassed() | SoftTimeLimit():
            return FailureClass.TIMEOUT
        case MemoryError():
            return FailureClass.RESOURCE
        case OSError() if error.errno in _OVER_A_LIMIT:
            return FailureClass.RESOURCE
        case Exception() if not isinstance(error, retry.on):
            return FailureClass.PERMANENT
        case _:
            return FailureClass.APP_ERROR


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # an error whose own text fails must not hide that the job failed
        return "(the error has no readable text)"


def _head(text: str, bytes_max: int) -> str:
    return text[:bytes_max].encode(errors="replace")[:bytes_max].decode(errors="ignore")


def _tail(text: str, bytes_max: int) -> str:
    return text[-bytes_max:].encode(errors="replace")[-bytes_max:].decode(errors="ignore")
