"""How runs end that cannot say so themselves: they were lost, killed, or never began."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from fairway.core.run.outcome import FailureClass, OutcomeKind
from fairway.core.run.process_limits import Verdict
from fairway.wire.exchange import NULL
from fairway.worker.exchange.lease_ledger import End


def crashed(how: str, ran_us: int = 0) -> End:
    """The runner died under it; costs a delivery, no attempt."""
    error = _error("WorkerCrash", f"The runner was {how} while it ran this job.")
    return End(OutcomeKind.FAILED, ran_us, NULL, FailureClass.WORKER_CRASH, error)


def judged(verdict: Verdict, ran_us: int) -> End:
    """It was ended from outside, for a reason."""
    error = _error(verdict.type, verdict.message)
    return End(verdict.kind, ran_us, NULL, verdict.failure, error)


def cancelled(ran_us: int = 0) -> End:
    return End(OutcomeKind.CANCELLED, ran_us)


def returned(ran_us: int = 0) -> End:
    return End(OutcomeKind.RETURNED, ran_us)


def _error(kind: str, message: str) -> Raw:
    return Raw(msgspec.json.encode({"type": kind, "message": message, "stack": ""}))
