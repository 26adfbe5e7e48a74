"""Runs that the platform cut short cost nobody anything; all others do."""

from __future__ import annotations

import pytest

from fairway.core.run.billing import LOST, is_billable
from fairway.core.run.outcome import FailureClass, OutcomeKind


@pytest.mark.parametrize("failure", FailureClass)
def test_a_failure_is_paid_for_also_when_it_killed_its_process(failure: FailureClass) -> None:
    assert is_billable(OutcomeKind.FAILED, failure, 1)


def test_a_process_that_died_by_nobody_knows_whose_doing_is_free() -> None:
    assert not is_billable(OutcomeKind.FAILED, FailureClass.WORKER_CRASH, 0)
    assert is_billable(OutcomeKind.FAILED, FailureClass.APP_ERROR, 0)


@pytest.mark.parametrize(
    ("said", "billable"),
    [
        (OutcomeKind.SUCCEEDED, True),
        (OutcomeKind.SNOOZED, True),
        (OutcomeKind.CANCELLED, True),
        (OutcomeKind.RETURNED, False),
        (LOST, False),
    ],
)
def test_other_ends(said: str, billable: bool) -> None:
    assert is_billable(said, None, 7) is billable


def test_a_lost_run_is_free_whatever_else_is_said() -> None:
    assert not is_billable(LOST, FailureClass.APP_ERROR, 7)
    assert not is_billable(LOST, FailureClass.WORKER_CRASH, 7)
