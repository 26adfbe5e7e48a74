"""Estimates: never outside the bounds of a prepayment, never moved far by one odd run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.fair_share.estimates import Estimates
from fairway.core.ids import TypeId

FIRST_US, MIN_US, MAX_US = 300_000, 1_000, 10_000_000
TYPE = TypeId(7)
runs = st.lists(st.integers(0, 100_000_000), max_size=50)


def fresh() -> Estimates:
    return Estimates(FIRST_US, MIN_US, MAX_US)


@given(runs)
def test_a_guess_stays_within_bounds_and_moves_by_an_eighth(runs: list[int]) -> None:
    estimates = fresh()
    estimate = estimates.of(TYPE)
    for number, run_us in enumerate(runs):
        before_us = estimate.prepaid_us
        estimates.learn(estimate, run_us)
        sample_us = max(MIN_US, min(run_us, MAX_US))
        assert MIN_US <= estimate.prepaid_us <= MAX_US
        if number:
            assert abs(estimate.prepaid_us - before_us) <= abs(sample_us - before_us) // 8 + 1
        else:
            assert estimate.prepaid_us == sample_us, "the first run counts in full"
    assert estimate.runs == len(runs)


@given(st.integers(0, 1_000_000_000), st.integers(0, 1_000_000_000))
def test_runs_of_one_length_are_soon_known(first_us: int, run_us: int) -> None:
    estimates = fresh()
    estimates.expect(TYPE, first_us)
    estimate = estimates.of(TYPE)
    for _ in range(150):
        estimates.learn(estimate, run_us)
    sample_us = max(MIN_US, min(run_us, MAX_US))
    assert abs(estimate.prepaid_us - sample_us) <= 8
    if run_us > MAX_US + 8:
        assert abs(estimates.mean_us(estimate) - run_us) <= max(8, abs(first_us - run_us) >> 20)


def test_one_run_of_an_hour_does_not_make_the_next_hundred_look_long() -> None:
    estimates = fresh()
    estimates.expect(TYPE, 100_000)
    estimate = estimates.of(TYPE)
    estimates.learn(estimate, 3_600_000_000)
    assert estimate.prepaid_us < 1_400_000
    assert estimate.runs_over == 1
    for _ in range(40):
        estimates.learn(estimate, 100_000)
    assert estimate.prepaid_us < 110_000
    assert estimates.mean_us(estimate) == estimate.prepaid_us


def test_asking_leaves_no_trace_and_what_is_forgotten_begins_anew() -> None:
    estimates = fresh()
    assert estimates.peek(TYPE).prepaid_us == FIRST_US
    assert estimates.by_type == {}
    estimates.learn(estimates.of(TYPE), 50_000)
    assert estimates.peek(TYPE).prepaid_us == 50_000
    estimates.forget(TYPE)
    assert estimates.of(TYPE).guessed
