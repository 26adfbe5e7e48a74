"""Takes back leases of runs that are long past their time limit, whatever their workers say.

A worker keeps the limit of a run itself; but one that hears nothing from its own runner, or was not
written with care, may beat for ever and never end a job. So the server has the last word: the run
is revoked, and counts as a time-out. Only a worker that was heard past the limit loses a run so,
and not as soon as it is back from a silence: its report may be on the way. The silent are the
rescuer's. Leases are looked at in small slices, off the path of jobs.
"""

from __future__ import annotations

from fairway.core.failure.fault import Fault, error_document
from fairway.core.object_storage.reference import MARK, referred
from fairway.core.run.lease import is_overtime, longest_us
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.runtime.loops import Effort, in_slices
from fairway.runtime.telemetry import Metrics, logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.sessions.sessions import Lease

log = logger("overtime")

REST_SECONDS = 1.0


class TimeLimitWatch:
    def __init__(self, dispatcher: Dispatcher, metrics: Metrics, grace_seconds: float) -> None:
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._grace_seconds = grace_seconds

    async def run_once(self, now_us: int) -> float:
        effort = Effort()
        async for some in in_slices(self._dispatcher.all_leases()):
            for lease in some:
                timeout_ms = lease.job.timeout_ms
                if timeout_ms is not None and self._is_over(lease, timeout_ms, now_us):
                    self._take_back(lease, timeout_ms, now_us)
        return effort.rest_seconds(min(REST_SECONDS, self._grace_seconds))

    def _is_over(self, lease: Lease, timeout_ms: int, now_us: int) -> bool:
        if not lease.delivered or lease.reported:
            return False  # it does not run: its worker has not heard of it, or has said its end
        if not self._dispatcher.stands(lease):
            return False  # over since
        payload = lease.job.payload
        large = referred(payload) if payload[:1] == MARK else None
        large_bytes = large.size_bytes if large else 0
        limit_us = longest_us(timeout_ms, self._grace_seconds, large_bytes)
        session = lease.session
        since_us = session.there_since_us if session.greeted else None
        spoken_us = None if since_us is None else now_us - since_us
        # A lease may wait for the store before it is sent, and be sent again when a reply was lost.
        heard_us = session.seen_us - max(lease.granted_us, lease.sent_us)
        return is_overtime(heard_us, limit_us, spoken_us, self._dispatcher.grace_us())

    def _take_back(self, lease: Lease, timeout_ms: int, now_us: int) -> None:
        worker = lease.session.worker
        log.warning("run past its time limit taken back", job=lease.job.id, worker=worker)
        fault = Fault(
            "TimeLimit",
            f"The run passed its limit of {timeout_ms / 1000:g} s and its worker did not end it.",
        )
        outcome = Outcome(
            OutcomeKind.FAILED,
            now_us - lease.granted_us,
            failure=FailureClass.TIMEOUT,
            error=error_document(None, "", fault),
        )
        self._metrics.overtime.inc()
        self._dispatcher.take_back(lease, outcome)
