"""The table of moves: whatever the rules can decide, the table allows."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.failure.retry import Counters, RetryPolicy, Tally, decide, in_quarantine, parked
from fairway.core.lifecycle import BY_LABEL, FINAL, LIVE, TRANSITIONS, State, may_move
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind


def test_nothing_leaves_a_final_state_but_a_replayed_dead_letter() -> None:
    ways_back = {move for move in product(FINAL, State) if may_move(*move)}
    assert ways_back == {(State.DEAD, State.QUEUED)}


def test_every_live_state_leads_to_an_end_and_is_reached() -> None:
    for state in LIVE:
        assert any(after in FINAL for before, after in TRANSITIONS if before == state)
    for state in set(State) - {State.SCHEDULED}:
        assert any(after == state for _, after in TRANSITIONS)


def test_final_states_are_those_with_an_end() -> None:
    assert {State.SUCCEEDED, State.DEAD, State.CANCELLED, State.EXPIRED} == FINAL
    assert all(state.is_final == (state in FINAL) for state in State)


def test_labels_are_the_words_of_the_house() -> None:
    assert list(BY_LABEL) == [
        "scheduled", "queued", "running", "succeeded", "dead", "cancelled", "expired",
    ]  # fmt: skip
    assert all(BY_LABEL[state.label] is state for state in State)


outcomes = st.builds(
    Outcome,
    kind=st.sampled_from(OutcomeKind),
    ran_us=st.integers(0, 10**9),
    failure=st.sampled_from(FailureClass),
    delay_ms=st.integers(0, 10**6),
)
counts = st.integers(0, 20)
counters = st.builds(Counters, counts, counts, counts, counts, counts)


@given(st.sampled_from([State.QUEUED, State.RUNNING]), outcomes, counts, counts, counters)
def test_every_decision_is_a_legal_move(
    before: State, outcome: Outcome, attempts: int, deliveries: int, failures: Counters
) -> None:
    """A run ends from `running`, or from `queued` when the short pool never wrote it."""
    tally = Tally(attempts, deliveries, failures)
    for decision in (
        decide(RetryPolicy(), tally, outcome, 0.5),
        decide(in_quarantine(RetryPolicy()), tally, outcome, 0.5),
        parked(tally),
    ):
        stays = before is decision.state is State.QUEUED
        assert stays or may_move(before, decision.state)


@pytest.mark.parametrize("state", list(State))
def test_no_move_leads_nowhere(state: State) -> None:
    assert not may_move(state, state)
