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
from fairway.sdk.client.enqueue import BatchRefused
from fairway.sdk.client.failures import (
    JobCancelled,
    JobEnded,
    JobExpired,
    JobFailed,
    StillRunning,
    Unreachable,
)
from fairway.sdk.client.handle import Handle
from fairway.sdk.client.status import JobStatus
from fairway.sdk.handler.checkpoint import CheckpointFailed, CheckpointRefused
from fairway.sdk.handler.codec import InvalidArguments
from fairway.sdk.handler.context import CTX, Ctx
from fairway.sdk.handler.outcomes import (
    Cancel,
    DependencyFailed,
    Fail,
    HandBack,
    Retry,
    Snooze,
)
from fairway.sdk.job import Job
from fairway.sdk.key_limits import Limit, Rate
from fairway.sdk.limits import Limits
from fairway.sdk.unique import Unique

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
    "Limit",
    "LimitReached",
    "Limits",
    "NotFound",
    "Rate",
    "Refused",
    "Retry",
    "Snooze",
    "StillRunning",
    "Unavailable",
    "Unique",
    "Unreachable",
]
