"""Fairway: hand in jobs, and write the functions that do them."""

from fairway.core.errors import (
    Conflict,
    FairwayError,
    Forbidden,
    InvalidRequest,
    LimitReached,
    NotFound,
    Refused,
    Unavailable,
)
from fairway.sdk.app import App
from fairway.sdk.client.failures import (
    BatchRefused,
    JobCancelled,
    JobEnded,
    JobExpired,
    JobFailed,
    StillRunning,
    Unreachable,
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
)
from fairway.sdk.job import Job
from fairway.sdk.limits import Limits

__all__ = [
    "CTX",
    "App",
    "BatchRefused",
    "Cancel",
    "CheckpointFailed",
    "CheckpointRefused",
    "Conflict",
    "Ctx",
    "DependencyFailed",
    "Fail",
    "FairwayError",
    "FlowHandle",
    "Forbidden",
    "HandBack",
    "Handle",
    "InvalidArguments",
    "InvalidRequest",
    "Job",
    "JobCancelled",
    "JobEnded",
    "JobExpired",
    "JobFailed",
    "JobStatus",
    "LimitReached",
    "Limits",
    "NotFound",
    "NotStarted",
    "Refused",
    "Retry",
    "RunIsOver",
    "Signature",
    "Snooze",
    "StillRunning",
    "TooManyFollowUps",
    "Unavailable",
    "Unreachable",
    "chain",
    "group",
]
