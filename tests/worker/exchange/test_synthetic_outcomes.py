"""Ends that no run said itself: what each costs the job, and what it tells people."""

from __future__ import annotations

import msgspec
import pytest

from fairway.core.run.outcome import Outcome
from fairway.core.run.process_limits import over_limit, timed_out
from fairway.worker.exchange.synthetic_outcomes import cancelled, crashed, judged, returned


@pytest.mark.parametrize(
    ("end", "kind", "failure"),
    [
        (crashed("killed by SIGSEGV", 7), "failed", "worker_crash"),
        (judged(timed_out(1500), 7), "failed", "timeout"),
        (judged(over_limit("It used too much."), 7), "failed", "resource"),
        (cancelled(7), "cancelled", None),
        (returned(7), "returned", None),
    ],
)
def test_the_kind_says_what_it_costs(end: Outcome, kind: str, failure: str | None) -> None:
    assert (end.kind, end.failure, end.ran_us) == (kind, failure, 7)
    assert (end.result, end.delay_ms) == (None, 0)
    assert (end.error is None) == (failure is None), "who failed says why, nobody else"


def test_the_error_is_a_document_for_people() -> None:
    found = msgspec.json.decode(crashed("killed by SIGSEGV").error or b"")
    assert found["type"] == "WorkerCrash"
    assert found["message"] == "The runner was killed by SIGSEGV while it ran this job."
    assert msgspec.json.decode(judged(timed_out(1500), 0).error or b"")["message"].startswith(
        "The time limit of 1.5 s passed"
    )
