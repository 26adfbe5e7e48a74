"""What becomes of a job after a run: a pure function of its policy, its counters and the outcome.

A crash costs a delivery, never an attempt; deliveries are bounded so that a job that kills its
workers ends as `poison`. A snooze and a hand-back by a draining worker give their delivery back:
deploys must not wear a job out. Jitter is a sampled number handed in, so every decision can be
replayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fairway.core.lifecycle import State
from fairway.core.outcome import FailureClass, Outcome, OutcomeKind

BACKOFF_SECONDS = (1.0, 5.0, 30.0, 300.0, 1800.0)
JITTER = 0.2  # a pause is spread over ± 20 %


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    attempts_max: int = 5
    deliveries_max: int = 10
    backoff_seconds: tuple[float, ...] = BACKOFF_SECONDS


class Decision(NamedTuple):
    """The job's next state, and the counters to write with it."""

    state: State
    attempts: int
    deliveries: int
    delay_ms: int = 0
    reason: str = ""


def decide(
    policy: RetryPolicy, attempts: int, deliveries: int, outcome: Outcome, sample: float
) -> Decision:
    """`attempts` and `deliveries` count before this run; `sample` is uniform in [0, 1)."""
    match outcome.kind:
        case OutcomeKind.SUCCEEDED:
            return Decision(State.SUCCEEDED, attempts + 1, deliveries + 1)
        case OutcomeKind.CANCELLED:
            return Decision(State.CANCELLED, attempts, deliveries + 1)
        case OutcomeKind.SNOOZED:
            return Decision(State.SCHEDULED, attempts, deliveries, outcome.delay_ms, "snoozed")
        case OutcomeKind.RETURNED:
            return Decision(State.QUEUED, attempts, deliveries, 0, "returned")
        case OutcomeKind.FAILED:
            return _after_failure(policy, attempts, deliveries, outcome, sample)


def _after_failure(
    policy: RetryPolicy, attempts: int, deliveries: int, outcome: Outcome, sample: float
) -> Decision:
    if outcome.failure is FailureClass.WORKER_CRASH:
        return after_loss(policy, attempts, deliveries)
    attempts, deliveries = attempts + 1, deliveries + 1
    if outcome.failure is FailureClass.PERMANENT:
        return Decision(State.DEAD, attempts, deliveries, 0, "permanent")
    if attempts >= policy.attempts_max:
        return Decision(State.DEAD, attempts, deliveries, 0, "attempts_exhausted")
    delay_ms = outcome.delay_ms or backoff_ms(policy, attempts, sample)
    return Decision(State.SCHEDULED, attempts, deliveries, delay_ms, "retrying")


def after_loss(policy: RetryPolicy, attempts: int, deliveries: int) -> Decision:
    """A lease was lost: granted again at once, until the bound on deliveries."""
    deliveries += 1
    if deliveries >= policy.deliveries_max:
        return Decision(State.DEAD, attempts, deliveries, 0, "poison")
    return Decision(State.QUEUED, attempts, deliveries, 0, "worker_crash")


def backoff_ms(policy: RetryPolicy, attempts: int, sample: float) -> int:
    """The pause after the n-th attempt, spread by the sample so that herds break up."""
    row = policy.backoff_seconds
    base = row[min(attempts, len(row)) - 1]
    return round(base * 1000 * (1 - JITTER + 2 * JITTER * sample))
