"""What becomes of a job after a run: a pure function of its policy, its counters and the outcome.

Every failure class has a counter of its own and a bound of its own: a job that timed out once and
raised four times has used neither up. A crash costs a delivery, never an attempt; crashes are
bounded so that a job that kills its workers ends as `poison`. Deliveries alone are not: a snooze
and a hand-back by a draining worker cost one as well, and deploys must not wear a job out. Jitter
is a sampled number handed in, so every decision can be replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind

BACKOFF_SECONDS = (1.0, 5.0, 30.0, 300.0, 1800.0)
DEPENDENCY_BACKOFF_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
JITTER = 0.2  # a pause is spread over ± 20 %
QUARANTINE_RUNS_MAX = 2
COUNT_MAX = (1 << 15) - 1  # as far as the store counts runs and failures; then the count stands
RETRY_AFTER_MS_MAX = 24 * 3600 * 1000  # a dependency's word is not believed beyond a day


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How many failures of each class end a job, and the pauses in between."""

    attempts_max: int = 5  # errors of the handler
    timeouts_max: int = 2
    resources_max: int = 2
    dependencies_max: int = 20
    deliveries_max: int = 10  # crashes of its workers
    failures_max: int | None = None  # of the job's own doing, all classes together; in quarantine
    backoff_seconds: tuple[float, ...] = BACKOFF_SECONDS
    dependency_backoff_seconds: tuple[float, ...] = DEPENDENCY_BACKOFF_SECONDS


class Counters(NamedTuple):
    """Failures so far, one counter a class."""

    app_error: int = 0
    timeout: int = 0
    dependency: int = 0
    resource: int = 0
    worker_crash: int = 0

    @property
    def of_the_job(self) -> int:
        """Its own doing: neither a crash, which may be the platform's, nor a dependency's."""
        return self.app_error + self.timeout + self.resource


NO_FAILURES = Counters()


class Tally(NamedTuple):
    """What is counted of one job: runs it answered for, runs it was given, failures by class."""

    attempts: int = 0
    deliveries: int = 0
    failures: Counters = NO_FAILURES


NOTHING_YET = Tally()


class DecisionReason(StrEnum):
    """Why a decision is as it is; told to people, and kept with the run."""

    NONE = ""  # its state says it all
    RETRYING = "retrying"
    SNOOZED = "snoozed"
    RETURNED = "returned"
    WORKER_CRASH = "worker_crash"  # given to another worker at once
    PARKED = "parked"  # until its dependency's circuit closes
    CANCELLED = "cancelled"
    PERMANENT = "permanent"
    RUNAWAY = "runaway"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    TIMEOUTS_EXHAUSTED = "timeouts_exhausted"
    DEPENDENCY_EXHAUSTED = "dependency_exhausted"
    RESOURCES_EXHAUSTED = "resources_exhausted"
    POISON = "poison"  # its runs killed too many workers
    QUARANTINED = "quarantined"
    RETRY_BUDGET_EXHAUSTED = "retry_budget_exhausted"
    TOO_LATE = "too_late"
    REFUSED_BY_STORE = "refused_by_store"


class Decision(NamedTuple):
    """The job's next state, and the counts to write with it."""

    state: State
    tally: Tally
    delay_ms: int = 0
    reason: DecisionReason = DecisionReason.NONE


def decide(policy: RetryPolicy, tally: Tally, outcome: Outcome, sample: float) -> Decision:
    """`tally` counts before this run; `sample` is uniform in [0, 1)."""
    run = tally._replace(deliveries=_one_more(tally.deliveries))
    match outcome.kind:
        case OutcomeKind.SUCCEEDED:
            return Decision(State.SUCCEEDED, run._replace(attempts=_one_more(tally.attempts)))
        case OutcomeKind.CANCELLED:
            return Decision(State.CANCELLED, run)
        case OutcomeKind.SNOOZED:
            return Decision(State.SCHEDULED, run, outcome.delay_ms, DecisionReason.SNOOZED)
        case OutcomeKind.RETURNED:
            return Decision(State.QUEUED, run, 0, DecisionReason.RETURNED)
        case OutcomeKind.FAILED:
            return _after_failure(policy, run, outcome, sample)


def _after_failure(policy: RetryPolicy, run: Tally, outcome: Outcome, sample: float) -> Decision:
    failure = outcome.failure or FailureClass.APP_ERROR
    if failure in _ATTEMPTS:
        run = run._replace(attempts=_one_more(run.attempts))
    if failure in _FINAL:
        return Decision(State.DEAD, run, 0, DecisionReason(failure.value))
    count = _one_more(getattr(run.failures, failure.value))
    run = run._replace(failures=run.failures._replace(**{failure.value: count}))
    most, reason = _bound(policy, failure)
    if count >= most:
        return Decision(State.DEAD, run, 0, reason)
    if failure is FailureClass.WORKER_CRASH:
        return Decision(State.QUEUED, run, 0, DecisionReason.WORKER_CRASH)
    if failure is not FailureClass.DEPENDENCY and _is_enough(policy, run.failures):
        return Decision(State.DEAD, run, 0, DecisionReason.QUARANTINED)
    pause_ms = _pause_ms(policy, count, outcome, sample)
    return Decision(State.SCHEDULED, run, pause_ms, DecisionReason.RETRYING)


def _one_more(count: int) -> int:
    return min(count + 1, COUNT_MAX)


def _is_enough(policy: RetryPolicy, failures: Counters) -> bool:
    return policy.failures_max is not None and failures.of_the_job >= policy.failures_max


#: Failures that the job answers for with an attempt.
_ATTEMPTS = frozenset(
    {
        FailureClass.APP_ERROR,
        FailureClass.PERMANENT,
        FailureClass.TIMEOUT,
        FailureClass.RUNAWAY,
    }
)
_FINAL = frozenset({FailureClass.PERMANENT, FailureClass.RUNAWAY})


def _bound(policy: RetryPolicy, failure: FailureClass) -> tuple[int, DecisionReason]:
    """How many failures of this class are too many, and what a job dead of them says."""
    match failure:
        case FailureClass.TIMEOUT:
            return policy.timeouts_max, DecisionReason.TIMEOUTS_EXHAUSTED
        case FailureClass.DEPENDENCY:
            return policy.dependencies_max, DecisionReason.DEPENDENCY_EXHAUSTED
        case FailureClass.RESOURCE:
            return policy.resources_max, DecisionReason.RESOURCES_EXHAUSTED
        case FailureClass.WORKER_CRASH:
            return policy.deliveries_max, DecisionReason.POISON
        case _:
            return policy.attempts_max, DecisionReason.ATTEMPTS_EXHAUSTED


def _pause_ms(policy: RetryPolicy, count: int, outcome: Outcome, sample: float) -> int:
    if outcome.failure is not FailureClass.DEPENDENCY:
        return outcome.delay_ms or backoff_ms(policy.backoff_seconds, count, sample)
    if outcome.delay_ms:  # never before the moment that was asked for, and not all at that moment
        return round(min(outcome.delay_ms, RETRY_AFTER_MS_MAX) * (1 + JITTER * sample))
    return backoff_ms(policy.dependency_backoff_seconds, count, sample)


def backoff_ms(row: tuple[float, ...], count: int, sample: float) -> int:
    """The pause after the n-th failure, spread by the sample so that herds break up."""
    return spread_ms(row[min(count, len(row)) - 1] * 1000, JITTER, sample)


def spread_ms(pause_ms: float, jitter: float, sample: float) -> int:
    """Within ± `jitter` of the pause."""
    return round(pause_ms * (1 - jitter + 2 * jitter * sample))


# -- what the surroundings make of it ------------------------------------------------------------


def after_cancel(decision: Decision) -> Decision:
    """Somebody asked the job to stop while it ran: it is not run again, however the run ended."""
    if decision.state.is_final:
        return decision
    return decision._replace(state=State.CANCELLED, delay_ms=0, reason=DecisionReason.CANCELLED)


def in_quarantine(policy: RetryPolicy) -> RetryPolicy:
    """The same policy for a job type that mostly fails: no job of it fails more than twice."""
    return replace(policy, failures_max=QUARANTINE_RUNS_MAX)


def parked(tally: Tally) -> Decision:
    """The dependency's circuit is open: back to the backlog, and only the delivery is counted."""
    run = tally._replace(deliveries=_one_more(tally.deliveries))
    return Decision(State.QUEUED, run, 0, DecisionReason.PARKED)


def is_retry(decision: Decision) -> bool:
    """Whether the job failed and will be run again because of it; what a retry budget is for."""
    return decision.reason is DecisionReason.RETRYING


def over_budget(decision: Decision) -> Decision:
    """The tenant has no retries left: what would be tried again is a dead letter now."""
    return decision._replace(
        state=State.DEAD, delay_ms=0, reason=DecisionReason.RETRY_BUDGET_EXHAUSTED
    )
