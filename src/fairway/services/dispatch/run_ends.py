"""Runs end: well, otherwise, without a word, or on the platform's own word.

Each end gives the slot back at once and goes to be recorded; what follows a failure is decided in
`services/failure`. A part of the dispatcher; no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from fairway.core.failure.retry import Decision
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.runtime.clock import Clock
from fairway.runtime.telemetry import Metrics
from fairway.services.dispatch.lease_table import LeaseTable
from fairway.services.dispatch.ports import Ports
from fairway.services.failure.failure_policy import FailurePolicy, tally_of
from fairway.services.sessions.sessions import End, Lease

SILENT = b'{"type":"WorkerLost","message":"The worker died or fell silent while it ran this."}'
UNNAMED = b'{"type":"WorkerLost","message":"The worker no longer names this among what it runs."}'


class RunEnds:
    def __init__(
        self,
        leases: LeaseTable,
        failure_policy: FailurePolicy,
        ports: Ports,
        inline_bytes_max: int,
        *,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._leases = leases
        self._failure_policy = failure_policy
        self._record_ends = ports.record_ends
        self._inline_bytes_max = inline_bytes_max
        self._clock = clock
        self._metrics = metrics

    def succeeded(self, ends: list[End]) -> None:
        """As one session says."""
        self._leases.end([end.lease for end in ends], self._clock.now_us())
        numbers = [end.number for end in ends if end.number is not None]
        ends[0].lease.session.recording.update(numbers)
        if self._failure_policy.watched:
            most = self._inline_bytes_max
            kept = (end for end in ends if end.result is None or len(end.result) <= most)
            self._failure_policy.succeeded(end.lease.job for end in kept)
        self._record_ends(ends)

    def ended(self, lease: Lease, number: int, outcome: Outcome) -> None:
        """Otherwise than by success."""
        # should it fail, nothing is gone yet
        end = self._failure_policy.end_of(lease, number, outcome)
        self._leases.end([lease], self._clock.now_us())
        lease.session.recording.add(number)
        self._record_ends([end])

    def reported(self, lease: Lease) -> None:
        """A run is over, and its end cannot be taken yet: its lease stands, others use its slot."""
        if not lease.reported and self._leases.stands(lease):
            self._leases.free_slot(lease, self._clock.now_us())

    def given_up(self, lease: Lease, number: int, outcome: Outcome) -> None:
        """The end that was reported cannot be taken at all; unless the lease is over by now."""
        if self._leases.stands(lease) and lease.reported:
            self.ended(lease, number, outcome)

    def lost(self, leases: Iterable[Lease], error: bytes) -> None:
        """Nobody runs them any more: costs a delivery, never an attempt."""
        now_us, lost = self._clock.now_us(), list(leases)
        for lease in lost:
            outcome = replace(_LOST, ran_us=max(now_us - lease.granted_us, 0), error=error)
            end = self._failure_policy.end_of(lease, None, outcome)
            self._leases.end([lease], now_us)
            self._record_ends([end])
            # A tenant's own workers may die as often as they like: no alarm of the platform's.
            is_shared = lease.session.tenant is None
            (self._metrics.lost if is_shared else self._metrics.lost_by_own).inc()

    def taken_back(self, lease: Lease, outcome: Outcome) -> None:
        """On the platform's own word; its worker is told to stop it."""
        if not self._leases.stands(lease):
            return  # over since
        end = self._failure_policy.end_of(lease, None, outcome)
        self._leases.end([lease], self._clock.now_us())
        if lease.delivered:
            lease.session.revoke(lease.job.id, lease.epoch)
            lease.session.wake()
        self._record_ends([end])

    def never_began(self, lease: Lease) -> None:
        """It was asked to stop before its worker heard of it."""
        self._leases.end([lease], self._clock.now_us())
        cancelled = Decision(State.CANCELLED, tally_of(lease.job))
        self._record_ends([End(lease, None, 0, None, cancelled, outcome_label="cancelled")])


def requeued(end: End) -> QueuedJob | None:
    """The job as it waits again after this end, if it does."""
    decision = end.decision
    if decision is None or decision.state is not State.QUEUED:
        return None
    tally = decision.tally
    return replace(
        end.lease.job,
        epoch=end.lease.epoch,
        attempts=tally.attempts,
        deliveries=tally.deliveries,
        failures=tally.failures,
        place=None,  # its row was just written anew
    )


_LOST = Outcome(OutcomeKind.FAILED, 0, failure=FailureClass.WORKER_CRASH)
