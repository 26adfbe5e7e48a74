"""Fairway: hand in jobs, and write the functions that do them.

A name is loaded when it is first used: the commands, which import this package too, answer before
the SDK would have been read. So each stands here twice: once for type checkers and editors, once
for who runs this.
"""

import typing as _typing

if _typing.TYPE_CHECKING:  # spelt like this, or checkers do not know it
    from fairway.core.errors import Conflict as Conflict
    from fairway.core.errors import FairwayError as FairwayError
    from fairway.core.errors import Forbidden as Forbidden
    from fairway.core.errors import Gone as Gone
    from fairway.core.errors import InvalidRequest as InvalidRequest
    from fairway.core.errors import LimitReached as LimitReached
    from fairway.core.errors import NotFound as NotFound
    from fairway.core.errors import Refused as Refused
    from fairway.core.errors import Unavailable as Unavailable
    from fairway.core.events.event import Event as Event
    from fairway.core.events.event_gap import EventGap as EventGap
    from fairway.sdk.app import App as App
    from fairway.sdk.bulk import Bulk as Bulk
    from fairway.sdk.client.enqueue import BatchRefused as BatchRefused
    from fairway.sdk.client.failures import JobCancelled as JobCancelled
    from fairway.sdk.client.failures import JobEnded as JobEnded
    from fairway.sdk.client.failures import JobExpired as JobExpired
    from fairway.sdk.client.failures import JobFailed as JobFailed
    from fairway.sdk.client.failures import ResultIgnored as ResultIgnored
    from fairway.sdk.client.failures import StillRunning as StillRunning
    from fairway.sdk.client.flows import FlowHandle as FlowHandle
    from fairway.sdk.client.flows import Signature as Signature
    from fairway.sdk.client.flows import chain as chain
    from fairway.sdk.client.flows import group as group
    from fairway.sdk.client.handle import Handle as Handle
    from fairway.sdk.client.run_door import NotStarted as NotStarted
    from fairway.sdk.client.status import JobStatus as JobStatus
    from fairway.sdk.handler.checkpoint import CheckpointFailed as CheckpointFailed
    from fairway.sdk.handler.checkpoint import CheckpointRefused as CheckpointRefused
    from fairway.sdk.handler.codec import InvalidArguments as InvalidArguments
    from fairway.sdk.handler.context import CTX as CTX
    from fairway.sdk.handler.context import Ctx as Ctx
    from fairway.sdk.handler.follow_ups import RunIsOver as RunIsOver
    from fairway.sdk.handler.follow_ups import TooManyFollowUps as TooManyFollowUps
    from fairway.sdk.handler.outcomes import Cancel as Cancel
    from fairway.sdk.handler.outcomes import DependencyFailed as DependencyFailed
    from fairway.sdk.handler.outcomes import Fail as Fail
    from fairway.sdk.handler.outcomes import HandBack as HandBack
    from fairway.sdk.handler.outcomes import Retry as Retry
    from fairway.sdk.handler.outcomes import Snooze as Snooze
    from fairway.sdk.handler.outcomes import SoftTimeLimit as SoftTimeLimit
    from fairway.sdk.handler.pauses import Exponential as Exponential
    from fairway.sdk.hooks import Enqueueing as Enqueueing
    from fairway.sdk.hooks import JobDeath as JobDeath
    from fairway.sdk.hooks import RunFailure as RunFailure
    from fairway.sdk.http.unreachable import Unreachable as Unreachable
    from fairway.sdk.job import Job as Job
    from fairway.sdk.key_limits import Limit as Limit
    from fairway.sdk.key_limits import Rate as Rate
    from fairway.sdk.limits import Limits as Limits
    from fairway.sdk.unique import Debounce as Debounce
    from fairway.sdk.unique import Unique as Unique
    from fairway.sdk.webhooks import WebhookRefused as WebhookRefused
    from fairway.sdk.webhooks import Webhooks as Webhooks
    from fairway.sdk.webhooks import verify_webhook as verify_webhook
    from fairway.wire.run_logs import LogLine as LogLine
else:  # unseen by type checkers: to them a misspelt name must stay a mistake
    _PLACES = {
        "fairway.core.errors": (
            "Conflict FairwayError Forbidden Gone InvalidRequest LimitReached NotFound "
            "Refused Unavailable"
        ),
        "fairway.core.events.event": "Event",
        "fairway.core.events.event_gap": "EventGap",
        "fairway.sdk.app": "App",
        "fairway.sdk.bulk": "Bulk",
        "fairway.sdk.client.enqueue": "BatchRefused",
        "fairway.sdk.client.failures": (
            "JobCancelled JobEnded JobExpired JobFailed ResultIgnored StillRunning"
        ),
        "fairway.sdk.client.flows": "FlowHandle Signature chain group",
        "fairway.sdk.client.handle": "Handle",
        "fairway.sdk.client.run_door": "NotStarted",
        "fairway.sdk.client.status": "JobStatus",
        "fairway.sdk.handler.checkpoint": "CheckpointFailed CheckpointRefused",
        "fairway.sdk.handler.codec": "InvalidArguments",
        "fairway.sdk.handler.context": "CTX Ctx",
        "fairway.sdk.handler.follow_ups": "RunIsOver TooManyFollowUps",
        "fairway.sdk.handler.outcomes": (
            "Cancel DependencyFailed Fail HandBack Retry Snooze SoftTimeLimit"
        ),
        "fairway.sdk.handler.pauses": "Exponential",
        "fairway.sdk.hooks": "Enqueueing JobDeath RunFailure",
        "fairway.sdk.http.unreachable": "Unreachable",
        "fairway.sdk.job": "Job",
        "fairway.sdk.key_limits": "Limit Rate",
        "fairway.sdk.limits": "Limits",
        "fairway.sdk.unique": "Debounce Unique",
        "fairway.sdk.webhooks": "WebhookRefused Webhooks verify_webhook",
        "fairway.wire.run_logs": "LogLine",
    }
    _PLACE_OF = {name: place for place, names in _PLACES.items() for name in names.split()}
    __all__ = sorted(_PLACE_OF)

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
