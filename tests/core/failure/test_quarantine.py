"""Quarantine: only proof imposes it, a few good runs lift it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairway.core.failure.quarantine import OWN_FAILURES, Quarantine, QuarantineSettings
from fairway.core.run.outcome import FailureClass

SETTINGS = QuarantineSettings()
HOUR_US = 3_600_000_000


def test_more_than_half_of_enough_runs() -> None:
    quarantine = Quarantine(SETTINGS)
    answers = [quarantine.failed(0, is_first=True) for _ in range(SETTINGS.runs_min)]
    assert answers == [False] * (SETTINGS.runs_min - 1) + [True]
    quarantine = Quarantine(SETTINGS)
    quarantine.succeeded(0, 100)
    assert not any(quarantine.failed(0, is_first=True) for _ in range(100)), "half is not more"
    assert quarantine.failed(0, is_first=True)


def test_a_job_is_held_against_its_type_once() -> None:
    quarantine = Quarantine(SETTINGS)
    assert not any(quarantine.failed(0, is_first=False) for _ in range(1000))


def test_an_hour_later_it_is_forgotten() -> None:
    quarantine = Quarantine(SETTINGS)
    for _ in range(SETTINGS.runs_min - 1):
        quarantine.failed(0, is_first=True)
    assert not quarantine.failed(HOUR_US * 2, is_first=True)
    assert quarantine.is_idle(HOUR_US * 4)


def test_good_runs_in_a_row_lift_it_and_it_starts_afresh() -> None:
    quarantine = Quarantine(SETTINGS)
    quarantine.impose()
    for _ in range(3):  # never enough in a row
        assert not quarantine.succeeded(0, SETTINGS.probe_successes - 1)
        quarantine.failed(0, is_first=True)
    assert quarantine.succeeded(0, SETTINGS.probe_successes)
    assert not quarantine.is_on
    assert not quarantine.failed(0, is_first=True)


def test_what_is_nobodys_proof_is_no_failure_of_its_own() -> None:
    assert set(FailureClass) - OWN_FAILURES == {FailureClass.WORKER_CRASH, FailureClass.DEPENDENCY}


@given(st.lists(st.booleans(), max_size=200))
def test_it_comes_on_exactly_when_most_of_enough_runs_failed(runs: list[bool]) -> None:
    quarantine, good, bad = Quarantine(SETTINGS), 0, 0
    for is_good in runs:
        good, bad = good + is_good, bad + (not is_good)
        is_most = bad * 2 > good + bad and good + bad >= SETTINGS.runs_min
        if is_good:
            quarantine.succeeded(0)
        else:
            assert quarantine.failed(0, is_first=True) == is_most
        if quarantine.is_on:
            return
