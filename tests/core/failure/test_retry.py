"""What becomes of a job after a run: the whole table, and the laws it follows."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.failure.retry import (
    BACKOFF_SECONDS,
    COUNT_MAX,
    DEPENDENCY_BACKOFF_SECONDS,
    JITTER,
    QUARANTINE_RUNS_MAX,
    RETRY_AFTER_MS_MAX,
    Counters,
    Decision,
    DecisionReason,
    RetryPolicy,
    Tally,
    after_cancel,
    backoff_ms,
    decide,
    in_quarantine,
    is_retry,
    over_budget,
    parked,
)
from fairway.core.lifecycle import State
from fairway.core.pools import BUILT_IN, Pool
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind

POLICY = RetryPolicy()
MIDDLE = 0.5  # the sample that leaves a pause as it is
F = FailureClass
COUNTED = (F.APP_ERROR, F.TIMEOUT, F.DEPENDENCY, F.RESOURCE)  # fail, pause, and end at a bound

OWN = (F.APP_ERROR, F.TIMEOUT, F.RESOURCE)  # the job's own doing


def failed(failure: FailureClass, delay_ms: int = 0) -> Outcome:
    return Outcome(OutcomeKind.FAILED, 1, failure=failure, delay_ms=delay_ms)


def having(failure: FailureClass, count: int) -> Counters:
    return Counters()._replace(**{failure.value: count})


# -- every class × every count × every policy ----------------------------------------------------

#: class → (its bound's name in the policy, costs an attempt, reason at the bound)
CLASSES = {
    F.APP_ERROR: ("attempts_max", True, "attempts_exhausted"),
    F.TIMEOUT: ("timeouts_max", True, "timeouts_exhausted"),
    F.DEPENDENCY: ("dependencies_max", False, "dependency_exhausted"),
    F.RESOURCE: ("resources_max", False, "resources_exhausted"),
    F.WORKER_CRASH: ("deliveries_max", False, "poison"),
}
POLICIES = {
    "default": RetryPolicy(),
    "medium": RetryPolicy(attempts_max=3),
    "once": RetryPolicy(
        attempts_max=1, timeouts_max=1, resources_max=1, dependencies_max=1, deliveries_max=1
    ),
    "patient": RetryPolicy(
        attempts_max=9, timeouts_max=7, resources_max=6, dependencies_max=40, deliveries_max=20
    ),
    "quarantined": in_quarantine(RetryPolicy()),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("failure", CLASSES)
def test_the_table_of_counted_classes(failure: FailureClass, name: str) -> None:
    policy, (bound, costs_attempt, reason) = POLICIES[name], CLASSES[failure]
    most = getattr(policy, bound)
    for before in range(most + 2):
        tally = Tally(3, 7, having(failure, before))
        decision = decide(policy, tally, failed(failure), MIDDLE)
        assert decision.tally == Tally(3 + costs_attempt, 8, having(failure, before + 1))
        if before + 1 >= most:
            assert (decision.state, decision.reason) == (State.DEAD, reason)
        elif failure is F.WORKER_CRASH:
            assert decision[0:1] + decision[2:] == (State.QUEUED, 0, "worker_crash")
        elif name == "quarantined" and failure is not F.DEPENDENCY and before >= 1:
            assert (decision.state, decision.reason) == (State.DEAD, "quarantined")
        else:
            row = DEPENDENCY_BACKOFF_SECONDS if failure is F.DEPENDENCY else BACKOFF_SECONDS
            pause_ms = round(1000 * row[min(before, len(row) - 1)])
            assert decision[0:1] + decision[2:] == (State.SCHEDULED, pause_ms, "retrying")


@pytest.mark.parametrize("failure", [F.PERMANENT, F.RUNAWAY])
@pytest.mark.parametrize("policy", POLICIES.values(), ids=list(POLICIES))
def test_some_failures_are_final_at_once(policy: RetryPolicy, failure: FailureClass) -> None:
    for counters in (Counters(), Counters(1, 1, 1, 1, 1)):
        decision = decide(policy, Tally(2, 4, counters), failed(failure, 99), MIDDLE)
        assert decision == Decision(
            State.DEAD, Tally(3, 5, counters), 0, DecisionReason(failure.value)
        )


def test_the_table_has_every_class() -> None:
    assert {*CLASSES, F.PERMANENT, F.RUNAWAY} == set(FailureClass)


@pytest.mark.parametrize("tally", [Tally(), Tally(4, 9, Counters(4, 1, 19, 1, 9))])
def test_the_table_of_other_ends(tally: Tally) -> None:
    def after(kind: OutcomeKind, delay_ms: int = 0) -> Decision:
        return decide(POLICY, tally, Outcome(kind, 1, delay_ms=delay_ms), MIDDLE)

    ran = tally._replace(deliveries=tally.deliveries + 1)
    assert after(OutcomeKind.SUCCEEDED) == Decision(
        State.SUCCEEDED, ran._replace(attempts=tally.attempts + 1)
    )
    assert after(OutcomeKind.CANCELLED) == Decision(State.CANCELLED, ran)
    assert after(OutcomeKind.SNOOZED, 70) == Decision(
        State.SCHEDULED, ran, 70, DecisionReason.SNOOZED
    )
    assert after(OutcomeKind.RETURNED) == Decision(State.QUEUED, ran, 0, DecisionReason.RETURNED)


# -- one counter each ----------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "other"), [p for p in product(CLASSES, CLASSES) if p[0] != p[1]])
def test_a_class_never_uses_up_another(first: FailureClass, other: FailureClass) -> None:
    """One short of its bound in one class, a job is as fresh as ever in another."""
    almost = having(first, getattr(POLICY, CLASSES[first][0]) - 1)
    decision = decide(POLICY, Tally(0, 0, almost), failed(other), MIDDLE)
    assert decision.state is not State.DEAD
    assert getattr(decision.tally.failures, first.value) == getattr(almost, first.value)


def test_the_worst_job_ends() -> None:
    """Whatever mixture it fails with, the sum of all bounds is the end of it."""
    tally, state, runs = Tally(), State.QUEUED, 0
    while state is not State.DEAD:
        failure = list(CLASSES)[runs % len(CLASSES)]
        state, tally, *_ = decide(POLICY, tally, failed(failure), MIDDLE)
        runs += 1
    assert runs <= 5 + 2 + 20 + 2 + 10


# -- pauses --------------------------------------------------------------------------------------


def test_the_default_pauses() -> None:
    assert BACKOFF_SECONDS == (1, 5, 30, 300, 1800)
    pauses = [backoff_ms(BACKOFF_SECONDS, count, MIDDLE) for count in range(1, 8)]
    assert pauses == [1000, 5000, 30_000, 300_000, 1_800_000, 1_800_000, 1_800_000]


@given(st.integers(1, 50), st.floats(0, 1, exclude_max=True))
def test_jitter_spreads_a_pause_and_never_beyond_its_part(count: int, sample: float) -> None:
    base = backoff_ms(BACKOFF_SECONDS, count, MIDDLE)
    spread = backoff_ms(BACKOFF_SECONDS, count, sample)
    assert base * (1 - JITTER) <= spread <= base * (1 + JITTER)


@given(st.integers(1, 10**7), st.floats(0, 1, exclude_max=True))
def test_a_retry_after_is_never_cut_short(delay_ms: int, sample: float) -> None:
    pause_ms = decide(POLICY, Tally(), failed(F.DEPENDENCY, delay_ms), sample).delay_ms
    assert delay_ms <= pause_ms <= delay_ms * (1 + JITTER) + 1


def test_a_pause_of_the_job_types_own_is_kept() -> None:
    assert decide(POLICY, Tally(), failed(F.APP_ERROR, 123), 0.9).delay_ms == 123


# -- laws ----------------------------------------------------------------------------------------

counts = st.integers(0, 30)
tallies = st.builds(Tally, counts, counts, st.builds(Counters, counts, counts, counts, counts))
samples = st.floats(0, 1, exclude_max=True)


@given(tallies, samples)
def test_a_crash_uses_no_attempt_and_one_delivery(tally: Tally, sample: float) -> None:
    decision = decide(POLICY, tally, failed(F.WORKER_CRASH), sample)
    assert decision.tally.attempts == tally.attempts
    assert decision.tally.deliveries == tally.deliveries + 1
    assert (decision.state is State.DEAD) == (
        decision.tally.failures.worker_crash >= POLICY.deliveries_max
    )


@pytest.mark.parametrize("kind", [OutcomeKind.RETURNED, OutcomeKind.SNOOZED])
@given(tally=tallies)
def test_deploys_and_snoozes_wear_nothing_out(kind: OutcomeKind, tally: Tally) -> None:
    decision = decide(POLICY, tally, Outcome(kind, 1), MIDDLE)
    assert decision.tally == tally._replace(deliveries=tally.deliveries + 1)
    assert not decision.state.is_final


def test_crashes_are_bounded() -> None:
    tally, state, grants, reason = Tally(), State.QUEUED, 0, ""
    while state is State.QUEUED:
        state, tally, _, reason = decide(POLICY, tally, failed(F.WORKER_CRASH), MIDDLE)
        grants += 1
    assert (state, grants, tally.attempts, reason) == (State.DEAD, 10, 0, "poison")


@pytest.mark.parametrize("pool", BUILT_IN, ids=lambda pool: pool.name)
def test_attempts_are_bounded_by_the_pool(pool: Pool) -> None:
    policy = RetryPolicy(attempts_max=pool.attempts_max)
    tally, state = Tally(), State.SCHEDULED
    while state is State.SCHEDULED:
        state, tally, *_ = decide(policy, tally, failed(F.APP_ERROR), MIDDLE)
    assert (state, tally.attempts) == (State.DEAD, policy.attempts_max)


@given(tallies, st.sampled_from(COUNTED), samples, st.integers(0, 10**6))
def test_a_counted_failure_pauses_or_ends(
    tally: Tally, failure: FailureClass, sample: float, delay_ms: int
) -> None:
    decision = decide(POLICY, tally, failed(failure, delay_ms), sample)
    assert decision.tally.deliveries == tally.deliveries + 1
    if decision.state is State.DEAD:
        assert decision.reason.endswith("_exhausted")
    else:
        assert (decision.state, is_retry(decision)) == (State.SCHEDULED, True)
        assert decision.delay_ms > 0


# -- the surroundings ----------------------------------------------------------------------------


@given(st.lists(st.sampled_from(OWN), min_size=2, max_size=2), samples)
def test_in_quarantine_no_job_fails_more_than_twice(
    failures: list[FailureClass], sample: float
) -> None:
    policy, tally, state = in_quarantine(POLICY), Tally(), State.QUEUED
    for failure in failures:
        assert state is not State.DEAD
        state, tally, *_ = decide(policy, tally, failed(failure), sample)
    assert (state, tally.failures.of_the_job) == (State.DEAD, QUARANTINE_RUNS_MAX)


@given(tallies, st.sampled_from(FailureClass), samples)
def test_a_job_that_was_asked_to_stop_is_not_run_again(
    tally: Tally, failure: FailureClass, sample: float
) -> None:
    decision = decide(POLICY, tally, failed(failure), sample)
    stopped = after_cancel(decision)
    assert stopped.state in (State.CANCELLED, State.DEAD)
    assert (stopped == decision) == (decision.state is State.DEAD)
    assert stopped.tally == decision.tally


@given(tallies)
def test_parking_uses_nothing_but_a_delivery(tally: Tally) -> None:
    decision = parked(tally)
    assert (decision.state, decision.delay_ms) == (State.QUEUED, 0)
    assert decision.tally == tally._replace(deliveries=tally.deliveries + 1)


@given(tallies, samples)
def test_without_budget_a_retry_is_a_death(tally: Tally, sample: float) -> None:
    decision = decide(POLICY, tally, failed(F.APP_ERROR), sample)
    spent = over_budget(decision)
    assert (spent.state, spent.tally) == (State.DEAD, decision.tally)
    assert (spent.delay_ms, spent.reason) == (0, "retry_budget_exhausted")


# -- bounds --------------------------------------------------------------------------------------

COUNTS = st.integers(0, COUNT_MAX) | st.just(COUNT_MAX)
TALLIES = st.builds(Tally, COUNTS, COUNTS, st.builds(Counters, *[COUNTS] * 5))
OUTCOMES = st.builds(
    Outcome,
    st.sampled_from(OutcomeKind),
    st.just(1),
    failure=st.sampled_from(FailureClass) | st.none(),
)


@given(TALLIES, OUTCOMES)
def test_no_count_grows_past_what_the_store_can_hold(tally: Tally, outcome: Outcome) -> None:
    endless = RetryPolicy(
        attempts_max=1 << 40, timeouts_max=1 << 40, resources_max=1 << 40,
        dependencies_max=1 << 40, deliveries_max=1 << 40,
    )  # fmt: skip
    for decision in (decide(endless, tally, outcome, MIDDLE), parked(tally)):
        counts = (decision.tally.attempts, decision.tally.deliveries, *decision.tally.failures)
        assert max(counts) <= COUNT_MAX


@given(st.integers(0, 1 << 62), st.floats(0, 0.999))
def test_a_dependency_is_not_believed_beyond_a_day(delay_ms: int, sample: float) -> None:
    decision = decide(POLICY, Tally(), failed(F.DEPENDENCY, delay_ms), sample)
    assert decision.delay_ms <= RETRY_AFTER_MS_MAX * (1 + JITTER)
    if 0 < delay_ms <= RETRY_AFTER_MS_MAX:
        assert decision.delay_ms >= delay_ms
