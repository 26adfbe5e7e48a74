"""Why a job waits: one reason for every combination of facts, and starts that keep their order."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.explain import SENTENCES, Facts, Reason, reason_of, sentence_of, start_of
from fairway.core.fair_share.standings import Waiting
from fairway.core.lifecycle import State

UNSAID = (Reason.RUNNING, Reason.FINISHED, Reason.NO_WORKER)
FACTS = st.builds(
    Facts,
    state=st.sampled_from(State),
    due_in_us=st.none() | st.integers(-(10**9), 10**12),
    hold=st.none() | st.sampled_from(["paused", "circuit_open"]),
    has_worker=st.booleans(),
    has_slots=st.booleans(),
    waiting=st.sampled_from(Waiting),
    jobs_ahead=st.integers(0, 10_000),
    fair_slots_milli=st.integers(0, 10**6),
    debt_us=st.integers(-(10**9), 10**9),
    run_us=st.integers(0, 10**9),
    free_slots=st.integers(0, 100),
)


def expected(facts: Facts) -> str:
    """The table, read from the top; said once more in other words."""
    rows = [
        (facts.state is State.RUNNING, "running"),
        (facts.state.is_final, "finished"),
        (facts.state is State.SCHEDULED and (facts.due_in_us or 0) > 0, "not_due"),
        (facts.state is State.SCHEDULED, "rate"),
        (facts.hold is not None, facts.hold or ""),
        (not facts.has_worker, "no_worker"),
        (facts.waiting is Waiting.CAP, "capped"),
        (facts.waiting is Waiting.FAIR_SLOTS, "fair_share"),
        (facts.free_slots > facts.jobs_ahead or not facts.has_slots, "starting"),
        (True, "slot"),
    ]
    return next(reason for holds, reason in rows if holds)


def test_the_reason_of_every_combination_of_facts() -> None:
    for state, due, hold, worker, slots, waiting in product(
        State,
        (None, -1, 0, 1),
        (None, "paused", "circuit_open"),
        (True, False),
        (True, False),
        Waiting,
    ):
        facts = Facts(state, due, hold, worker, slots, waiting, free_slots=int(due != 0))
        assert reason_of(facts) == expected(facts), facts
        assert (start_of(facts) is None) == (expected(facts) in (*UNSAID, "paused", "circuit_open"))


@pytest.mark.parametrize("reason", SENTENCES)
def test_every_reason_has_a_sentence(reason: str) -> None:
    assert sentence_of(reason) == SENTENCES[reason]
    assert sentence_of(reason).endswith(".")


def test_a_hold_of_another_kind_has_a_sentence_too() -> None:
    assert sentence_of("out_of_memory") == "It is held: out of memory."


@given(FACTS)
def test_a_start_is_ordered(facts: Facts) -> None:
    start = start_of(facts)
    if start is not None:
        assert 0 <= start.earliest_us <= start.likely_us <= start.latest_us


@given(FACTS, st.integers(0, 1000))
def test_more_jobs_ahead_never_make_a_start_sooner(facts: Facts, more: int) -> None:
    near, far = start_of(facts), start_of(facts._replace(jobs_ahead=facts.jobs_ahead + more))
    assert (near is None) == (far is None)
    if near is not None and far is not None:
        assert all(one <= other for one, other in zip(near, far, strict=True))


@given(FACTS, st.integers(0, 10**6))
def test_more_fair_slots_never_make_a_start_later(facts: Facts, more: int) -> None:
    few, many = (
        start_of(facts),
        start_of(facts._replace(fair_slots_milli=facts.fair_slots_milli + more)),
    )
    if few is not None and many is not None:
        assert many.likely_us <= few.likely_us


@given(FACTS)
def test_free_slots_are_no_help_to_a_capped_job(facts: Facts) -> None:
    capped = facts._replace(state=State.QUEUED, hold=None, has_worker=True, waiting=Waiting.CAP)
    assert start_of(capped) == start_of(capped._replace(free_slots=0))


def test_a_job_starts_at_once_where_slots_are_free() -> None:
    facts = Facts(State.QUEUED, jobs_ahead=3, run_us=500, free_slots=4)
    assert start_of(facts) == (0, 0, 500)
    assert start_of(facts._replace(jobs_ahead=4)) != (0, 0, 500)


def test_nothing_starts_before_it_is_due() -> None:
    facts = Facts(State.SCHEDULED, due_in_us=7_000, run_us=10, free_slots=9)
    assert start_of(facts) == (7_000, 7_000, 7_020)
