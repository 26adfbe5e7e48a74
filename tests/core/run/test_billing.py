"""Runs that the platform cut short cost nobody anything; all others do."""

from __future__ import annotations

import pytest

from fairway.core.run.billing import LOST, is_billable
from fairway.core.run.outcome import FailureClass, OutcomeKind


@pytest.mark.parametrize("failure", FailureClass)
def test_a_failure_is_paid_for_unless_the_worker_died(failure: FailureClass) -> None:
    is_ours = failure is FailureClass.WORKER_CRASH
    assert is_billable(OutcomeKind.FAILED, failure) is not is_ours


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
    assert is_billable(said, None) is billable


def test_a_lost_run_is_free_whatever_else_is_said() -> None:
    assert not is_billable(LOST, FailureClass.APP_ERROR)
