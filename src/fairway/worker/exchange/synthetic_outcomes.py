"""How runs end that cannot say so themselves: they were lost, killed, or never began."""

from __future__ import annotations

import msgspec

from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.run.process_limits import Verdict


def crashed(how: str, ran_us: int = 0) -> Outcome:
    """The runner died under it; costs a delivery, no attempt.

    It is billed for the time that is said here: none unless it died by the doing of these jobs.
    """
    error = _error("WorkerCrash", f"The runner was {how} while it ran this job.")
    return Outcome(OutcomeKind.FAILED, ran_us, None, FailureClass.WORKER_CRASH, error)


def judged(verdict: Verdict, ran_us: int) -> Outcome:
    """It was ended from outside, for a reason."""
    error = _error(verdict.type, verdict.message)
    return Outcome(verdict.kind, ran_us, None, verdict.failure, error)


def cancelled(ran_us: int = 0) -> Outcome:
    return Outcome(OutcomeKind.CANCELLED, ran_us)


def returned(ran_us: int = 0) -> Outcome:
    return Outcome(OutcomeKind.RETURNED, ran_us)


def _error(kind: str, message: str) -> bytes:
    return msgspec.json.encode({"type": kind, "message": message, "stack": ""})
