"""Circuits: open at half, rest, probe, close; and what they promise about calls made in vain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.failure.circuits import (
    SECOND_US,
    Circuit,
    CircuitRecord,
    CircuitSettings,
    CircuitState,
)

SETTINGS = CircuitSettings()


def opened(now_us: int = 0, retry_after_us: int = 0) -> Circuit:
    circuit = Circuit(SETTINGS)
    for _ in range(SETTINGS.calls_min):
        circuit.failed(now_us, retry_after_us)
    assert circuit.state is CircuitState.OPEN
    return circuit


def test_it_opens_at_half_and_not_before_there_is_proof() -> None:
    circuit = Circuit(SETTINGS)
    assert not any(circuit.failed(0) for _ in range(SETTINGS.calls_min - 1))
    assert circuit.failed(0)
    circuit = Circuit(SETTINGS)
    circuit.succeeded(0, 11)
    answers = [circuit.failed(0) for _ in range(11)]
    assert answers == [False] * 10 + [True], "11 of 22 is half"


def test_what_left_the_window_counts_no_more() -> None:
    circuit = Circuit(SETTINGS)
    for _ in range(SETTINGS.calls_min - 1):
        circuit.failed(0)
    assert not circuit.failed(SETTINGS.window_us * 2)
    assert not circuit.is_open


def test_the_rest_ends_in_a_round_of_probes() -> None:
    circuit = opened()
    assert not circuit.tick(SETTINGS.rest_us - 1)
    assert circuit.tick(SETTINGS.rest_us)
    assert (circuit.state, circuit.probes_left) == (CircuitState.HALF_OPEN, SETTINGS.probes)
    assert not circuit.tick(SETTINGS.rest_us), "one round at a time"
    assert circuit.tick(SETTINGS.rest_us * 2), "nobody answered: another round"


def test_good_probes_close_it() -> None:
    circuit = opened()
    circuit.tick(SETTINGS.rest_us)
    answers = [circuit.succeeded(SETTINGS.rest_us) for _ in range(SETTINGS.probes)]
    assert answers == [False] * (SETTINGS.probes - 1) + [True]
    assert circuit.is_idle(SETTINGS.rest_us)
    assert not circuit.failed(SETTINGS.rest_us), "it needs proof again"


def test_a_bad_probe_doubles_the_rest_up_to_a_bound() -> None:
    circuit, rests = opened(), []
    now_us = 0
    for _ in range(10):
        now_us = circuit.probe_at_us
        assert circuit.tick(now_us)
        circuit.failed(now_us)
        assert circuit.state is CircuitState.OPEN
        rests.append((circuit.probe_at_us - now_us) // SECOND_US)
    assert rests == [10, 20, 40, 80, 160, 300, 300, 300, 300, 300]


@pytest.mark.parametrize("retry_after_us", [0, SECOND_US, 900 * SECOND_US])
def test_it_never_probes_before_it_was_asked_to(retry_after_us: int) -> None:
    circuit = opened(0, retry_after_us)
    assert circuit.probe_at_us == max(SETTINGS.rest_us, retry_after_us)
    circuit.failed(SECOND_US, retry_after_us)  # under way when it opened
    assert circuit.probe_at_us >= SECOND_US + retry_after_us


def test_ends_of_runs_from_before_change_nothing() -> None:
    circuit = opened()
    assert not circuit.succeeded(1)
    assert not circuit.failed(1)
    assert circuit.state is CircuitState.OPEN


def test_another_owner_goes_on_where_this_one_was() -> None:
    circuit = opened()
    record = circuit.record(2 * SECOND_US)
    assert record == CircuitRecord(SETTINGS.rest_us, SETTINGS.rest_us - 2 * SECOND_US)
    other = Circuit(SETTINGS)
    other.restore(record, 70 * SECOND_US)
    assert other.state is CircuitState.OPEN
    assert other.probe_at_us == 70 * SECOND_US + record.probe_in_us


@given(
    st.integers(1, 3600),
    st.integers(1, 64),
    st.lists(st.integers(0, 900), max_size=5),
)
def test_calls_in_vain_are_few_however_long_it_is_away(
    away_seconds: int, slots: int, retry_afters: list[int]
) -> None:
    """As many as prove it, as many as were under way, and a few probes that grow rare."""
    circuit, now_us, in_vain = Circuit(SETTINGS), 0, 0
    asked = iter(retry_afters)
    while not circuit.is_open:
        circuit.failed(now_us, next(asked, 0) * SECOND_US)
        in_vain += 1
    in_vain += slots
    rounds = 0
    while circuit.probe_at_us < away_seconds * SECOND_US:
        now_us = circuit.probe_at_us
        assert circuit.tick(now_us)
        rounds += 1
        for _ in range(SETTINGS.probes):
            circuit.failed(now_us)
            in_vain += 1
    assert rounds <= 7 + away_seconds // 300
    assert in_vain <= SETTINGS.calls_min + slots + SETTINGS.probes * rounds


@given(st.integers(0, 1 << 62))
def test_the_next_probe_is_an_hour_away_at_most(asked_us: int) -> None:
    """Whatever the dependency asks for, when it opens, while it is open, and at other owners."""
    circuit = opened(retry_after_us=asked_us)
    circuit.failed(0, asked_us)
    assert circuit.probe_at_us <= SETTINGS.retry_after_max_us
    other = Circuit(SETTINGS)
    other.restore(CircuitRecord(SETTINGS.rest_us, asked_us), 0)
    assert other.probe_at_us <= SETTINGS.retry_after_max_us


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["failed", "succeeded", "tick", "unsent"]),
            st.integers(0, 400 * SECOND_US),
            st.integers(0, 900 * SECOND_US),
        ),
        max_size=60,
    )
)
def test_a_round_without_probes_comes_again_soon_and_never_before_it_was_asked_to(
    steps: list[tuple[str, int, int]],
) -> None:
    circuit, now_us, asked_us = opened(), 0, 0
    for word, passed_us, retry_after_us in steps:
        now_us += passed_us
        due_before, state, probe_at_us = circuit.is_due(now_us), circuit.state, circuit.probe_at_us
        if word == "failed":
            circuit.failed(now_us, retry_after_us)
            if circuit.is_open:
                asked_us = max(asked_us, now_us + retry_after_us)
        elif word == "succeeded":
            circuit.succeeded(now_us)
        elif word == "tick":
            assert circuit.tick(now_us) == due_before
        else:
            circuit.unsent(now_us)
            assert circuit.state is state
            assert circuit.probe_at_us <= probe_at_us
            if state is CircuitState.HALF_OPEN:
                assert circuit.is_due(now_us + SETTINGS.rest_us)
            else:
                assert circuit.probe_at_us == probe_at_us
        if circuit.is_due(now_us):
            assert now_us >= asked_us
        if not circuit.is_open:
            asked_us = 0
