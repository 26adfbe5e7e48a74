"""What becomes of a job after a run: the whole table, and the laws it follows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.lifecycle import State
from fairway.core.outcome import FailureClass, Outcome, OutcomeKind, explained
from fairway.core.pools import BUILT_IN, Pool
from fairway.core.retry import (
    BACKOFF_SECONDS,
    JITTER,
    Decision,
    RetryPolicy,
    after_loss,
    backoff_ms,
    decide,
)

POLICY = RetryPolicy()
MIDDLE = 0.5  # the sample that leaves a pause as it is
COUNTED = (
    FailureClass.APP_ERROR,
    FailureClass.TIMEOUT,
    FailureClass.DEPENDENCY,
    FailureClass.RESOURCE,
)


def failed(failure: FailureClass, delay_ms: int = 0) -> Outcome:
    return Outcome(OutcomeKind.FAILED, 1, failure=failure, delay_ms=delay_ms)


def after(outcome: Outcome, attempts: int, deliveries: int) -> Decision:
    return decide(POLICY, attempts, deliveries, outcome, MIDDLE)


# -- every kind of outcome, from every side ------------------------------------------------------

FRESH, TIRED, LAST = (0, 0), (2, 4), (4, 9)  # attempts and deliveries before the run


@pytest.mark.parametrize(
    ("outcome", "counters", "expected"),
    [
        (Outcome(OutcomeKind.SUCCEEDED, 1), FRESH, (State.SUCCEEDED, 1, 1, 0)),
        (Outcome(OutcomeKind.SUCCEEDED, 1), LAST, (State.SUCCEEDED, 5, 10, 0)),
        (Outcome(OutcomeKind.CANCELLED, 1), FRESH, (State.CANCELLED, 0, 1, 0)),
        (Outcome(OutcomeKind.CANCELLED, 1), LAST, (State.CANCELLED, 4, 10, 0)),
        (Outcome(OutcomeKind.SNOOZED, 1, delay_ms=70), FRESH, (State.SCHEDULED, 0, 0, 70)),
        (Outcome(OutcomeKind.SNOOZED, 1, delay_ms=70), LAST, (State.SCHEDULED, 4, 9, 70)),
        (Outcome(OutcomeKind.RETURNED, 1), FRESH, (State.QUEUED, 0, 0, 0)),
        (Outcome(OutcomeKind.RETURNED, 1), LAST, (State.QUEUED, 4, 9, 0)),
        (failed(FailureClass.PERMANENT), FRESH, (State.DEAD, 1, 1, 0)),
        (failed(FailureClass.PERMANENT), LAST, (State.DEAD, 5, 10, 0)),
        (failed(FailureClass.WORKER_CRASH), FRESH, (State.QUEUED, 0, 1, 0)),
        (failed(FailureClass.WORKER_CRASH), TIRED, (State.QUEUED, 2, 5, 0)),
        (failed(FailureClass.WORKER_CRASH), LAST, (State.DEAD, 4, 10, 0)),
        *[
            (failed(failure), FRESH, (State.SCHEDULED, 1, 1, 1000))
            for failure in COUNTED
        ],
        *[
            (failed(failure), TIRED, (State.SCHEDULED, 3, 5, 30_000))
            for failure in COUNTED
        ],
        *[(failed(failure), LAST, (State.DEAD, 5, 10, 0)) for failure in COUNTED],
        *[
            (failed(failure, 123), FRESH, (State.SCHEDULED, 1, 1, 123))
            for failure in COUNTED
        ],
    ],
)  # fmt: skip
def test_the_table(
    outcome: Outcome, counters: tuple[int, int], expected: tuple[State, int, int, int]
) -> None:
    assert after(outcome, *counters)[:4] == expected


def test_every_dead_letter_says_why() -> None:
    assert after(failed(FailureClass.PERMANENT), 0, 0).reason == "permanent"
    assert after(failed(FailureClass.APP_ERROR), 4, 4).reason == "attempts_exhausted"
    assert after_loss(POLICY, 0, 9).reason == "poison"


# -- pauses --------------------------------------------------------------------------------------


def test_the_default_pauses() -> None:
    assert BACKOFF_SECONDS == (1, 5, 30, 300, 1800)
    pauses = [backoff_ms(POLICY, attempt, MIDDLE) for attempt in range(1, 8)]
    assert pauses == [1000, 5000, 30_000, 300_000, 1_800_000, 1_800_000, 1_800_000]


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True))
def test_jitter_spreads_a_pause_and_never_beyond_its_part(attempt: int, sample: float) -> None:
    base = backoff_ms(POLICY, attempt, MIDDLE)
    assert base * (1 - JITTER) <= backoff_ms(POLICY, attempt, sample) <= base * (1 + JITTER)


# -- laws ----------------------------------------------------------------------------------------

counts = st.integers(0, 30)
samples = st.floats(0, 1, exclude_max=True)


@given(counts, counts)
def test_a_crash_uses_no_attempt_and_one_delivery(attempts: int, deliveries: int) -> None:
    decision = after_loss(POLICY, attempts, deliveries)
    assert (decision.attempts, decision.deliveries) == (attempts, deliveries + 1)
    assert decision == after(failed(FailureClass.WORKER_CRASH), attempts, deliveries)
    assert (decision.state is State.DEAD) == (decision.deliveries >= POLICY.deliveries_max)


@pytest.mark.parametrize("kind", [OutcomeKind.RETURNED, OutcomeKind.SNOOZED])
@given(attempts=counts, deliveries=counts)
def test_deploys_and_snoozes_wear_nothing_out(
    kind: OutcomeKind, attempts: int, deliveries: int
) -> None:
    decision = after(Outcome(kind, 1), attempts, deliveries)
    assert (decision.attempts, decision.deliveries) == (attempts, deliveries)
    assert not decision.state.is_final


def test_deliveries_are_bounded_whatever_crashes() -> None:
    attempts = deliveries = grants = 0
    state = State.QUEUED
    while state is State.QUEUED:
        state, attempts, deliveries, _, reason = after_loss(POLICY, attempts, deliveries)
        grants += 1
    assert (state, grants, attempts, reason) == (State.DEAD, 10, 0, "poison")


@pytest.mark.parametrize("pool", BUILT_IN, ids=lambda pool: pool.name)
def test_attempts_are_bounded_by_the_pool(pool: Pool) -> None:
    policy = RetryPolicy(attempts_max=pool.attempts_max)
    attempts = deliveries = 0
    state = State.SCHEDULED
    while state is State.SCHEDULED:
        state, attempts, deliveries, *_ = decide(
            policy, attempts, deliveries, failed(FailureClass.APP_ERROR), MIDDLE
        )
    assert (state, attempts, deliveries) == (State.DEAD, policy.attempts_max, policy.attempts_max)


@given(counts, counts, st.sampled_from(COUNTED), samples, st.integers(0, 10**6))
def test_a_counted_failure_pauses_or_ends(
    attempts: int, deliveries: int, failure: FailureClass, sample: float, delay_ms: int
) -> None:
    decision = decide(POLICY, attempts, deliveries, failed(failure, delay_ms), sample)
    assert (decision.attempts, decision.deliveries) == (attempts + 1, deliveries + 1)
    if attempts + 1 >= POLICY.attempts_max:
        assert decision.state is State.DEAD
    else:
        assert decision.state is State.SCHEDULED
        assert decision.delay_ms == delay_ms or not delay_ms
        assert decision.delay_ms > 0


def test_an_error_says_its_class_and_what_was_decided() -> None:
    told = explained(b'{"type":"ValueError"}', FailureClass.APP_ERROR, "retrying")
    assert told == b'{"failure":"app_error","reason":"retrying","type":"ValueError"}'
    for nothing in (None, b"{}", b'"text"'):
        told = explained(nothing, FailureClass.WORKER_CRASH, "poison")
        assert told == b'{"failure":"worker_crash","reason":"poison"}'
