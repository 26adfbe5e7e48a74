"""Fairway: hand in jobs, and write the functions that do them.

A name is loaded when it is first used: the commands, which import this package too, answer before
the SDK would have been read.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from fairway.core.errors import (
        Conflict,
        FairwayError,
        Forbidden,
        Gone,
        InvalidRequest,
        LimitReached,
        NotFound,
        Refused,
        Unavailable,
    )
    from fairway.sdk.app import App
    from fairway.sdk.client.enqueue import BatchRefused
    from fairway.sdk.client.failures import (
        JobCancelled,
        JobEnded,
        JobExpired,
        JobFailed,
        ResultIgnored,
        StillRunning,
    )
    from fairway.sdk.client.flows import FlowHandle, Signature, chain, group
    from fairway.sdk.client.handle import Handle
    from fairway.sdk.client.run_door import NotStarted
    from fairway.sdk.client.status import JobStatus
    from fairway.sdk.handler.checkpoint import CheckpointFailed, CheckpointRefused
    from fairway.sdk.handler.codec import InvalidArguments
    from fairway.sdk.handler.context import CTX, Ctx
    from fairway.sdk.handler.follow_ups import RunIsOver, TooManyFollowUps
    from fairway.sdk.handler.outcomes import (
        Cancel,
        DependencyFailed,
        Fail,
        HandBack,
        Retry,
        Snooze,
        SoftTimeLimit,
    )
    from fairway.sdk.handler.pauses import Exponential
    from fairway.sdk.hooks import Enqueueing, JobDeath, RunFailure
    from fairway.sdk.http.unreachable import Unreachable
    from fairway.sdk.job import Job
    from fairway.sdk.key_limits import Limit, Rate
    from fairway.sdk.limits import Limits
    from fairway.sdk.unique import Debounce, Unique
    from fairway.wire.run_logs import LogLine

__all__ = [
    "CTX",
    "App",
    "BatchRefused",
    "Cancel",
    "CheckpointFailed",
    "CheckpointRefused",
    "Conflict",
    "Ctx",
    "Debounce",
    "DependencyFailed",
    "Enqueueing",
    "Exponential",
    "Fail",
    "FairwayError",
    "FlowHandle",
    "Forbidden",
    "Gone",
    "HandBack",
    "Handle",
    "InvalidArguments",
    "InvalidRequest",
    "Job",
    "JobCancelled",
    "JobDeath",
    "JobEnded",
    "JobExpired",
    "JobFailed",
    "JobStatus",
    "Limit",
    "LimitReached",
    "Limits",
    "LogLine",
    "NotFound",
    "NotStarted",
    "Rate",
    "Refused",
    "ResultIgnored",
    "Retry",
    "RunFailure",
    "RunIsOver",
    "Signature",
    "Snooze",
    "SoftTimeLimit",
    "StillRunning",
    "TooManyFollowUps",
    "Unavailable",
    "Unique",
    "Unreachable",
    "chain",
    "group",
]

#: Where each of them is, for who runs this; what type checkers read is above.
_PLACES = {
    "fairway.core.errors": (
        "Conflict",
        "FairwayError",
        "Forbidden",
        "Gone",
        "InvalidRequest",
        "LimitReached",
        "NotFound",
        "Refused",
        "Unavailable",
    ),
    "fairway.sdk.app": ("App",),
    "fairway.sdk.client.enqueue": ("BatchRefused",),
    "fairway.sdk.client.failures": (
        "JobCancelled",
        "JobEnded",
        "JobExpired",
        "JobFailed",
        "ResultIgnored",
        "StillRunning",
    ),
    "fairway.sdk.client.flows": (
        "FlowHandle",
        "Signature",
        "chain",
        "group",
    ),
    "fairway.sdk.client.handle": ("Handle",),
    "fairway.sdk.client.run_door": ("NotStarted",),
    "fairway.sdk.client.status": ("JobStatus",),
    "fairway.sdk.handler.checkpoint": (
        "CheckpointFailed",
        "CheckpointRefused",
    ),
    "fairway.sdk.handler.codec": ("InvalidArguments",),
    "fairway.sdk.handler.context": (
        "CTX",
        "Ctx",
    ),
    "fairway.sdk.handler.follow_ups": (
        "RunIsOver",
        "TooManyFollowUps",
    ),
    "fairway.sdk.handler.outcomes": (
        "Cancel",
        "DependencyFailed",
        "Fail",
        "HandBack",
        "Retry",
        "Snooze",
        "SoftTimeLimit",
    ),
    "fairway.sdk.handler.pauses": ("Exponential",),
    "fairway.sdk.hooks": (
        "Enqueueing",
        "JobDeath",
        "RunFailure",
    ),
    "fairway.sdk.http.unreachable": ("Unreachable",),
    "fairway.sdk.job": ("Job",),
    "fairway.sdk.key_limits": (
        "Limit",
        "Rate",
    ),
    "fairway.sdk.limits": ("Limits",),
    "fairway.sdk.unique": ("Debounce", "Unique"),
    "fairway.wire.run_logs": ("LogLine",),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}

if not _TYPE_CHECKING:  # to a type checker a misspelt name must stay a mistake

    def __getattr__(name: str) -> object:
        place = _PLACE_OF.get(name)
        if place is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = getattr(import_module(place), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
