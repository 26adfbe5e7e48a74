"""Everything a run can mean. A closed set: only these can be recorded.

The SDK, the worker and the services share it. Between a worker and the platform it is a `Report`
(`wire/exchange.py`); what becomes of the job is decided in `core/failure/retry.py`.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class OutcomeKind(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # carries a failure class
    SNOOZED = "snoozed"  # the handler asked to be run again later; costs no attempt
    CANCELLED = "cancelled"  # the handler stopped because it was asked to, or chose to
    RETURNED = "returned"  # handed back unfinished by a draining worker; costs no attempt


class FailureClass(StrEnum):
    APP_ERROR = "app_error"
    PERMANENT = "permanent"
    WORKER_CRASH = "worker_crash"
    TIMEOUT = "timeout"
    DEPENDENCY = "dependency"
    RESOURCE = "resource"
    RUNAWAY = "runaway"  # burns processor time and gives no sign of progress


class Outcome(Struct, frozen=True, gc=False):
    """One run's end. `result` and `error` are JSON text."""

    kind: OutcomeKind
    ran_us: int = 0  # measured by whoever ran it
    result: bytes | None = None
    failure: FailureClass | None = None
    error: bytes | None = None
    delay_ms: int = 0  # snooze, or the pause a dependency asked for
