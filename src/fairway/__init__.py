"""Fairway: hand in jobs, and write the functions that do them."""

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
