"""One run of a handler under test, and all that it came to."""

from __future__ import annotations

import logging

from tests.sdk.sample_jobs import Score, drowsy, flaky, score

from fairway import testing
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, OutcomeKind


def test_perform_tells_everything() -> None:
    done = testing.perform(score, "cv1", "r1", attempt=3)
    assert done.result == Score(3, "cv1 r1")
    assert done.outcome is OutcomeKind.SUCCEEDED
    assert done.logs == [(logging.INFO, "scoring cv1")]
    assert done.progress[-1] == {"done": 3, "total": 3, "text": "pages"}
    assert done.error == {}


def test_perform_tells_what_would_become_of_the_job() -> None:
    first, last = testing.perform(flaky, 99), testing.perform(flaky, 99, attempt=3)
    assert (first.outcome, first.failure) == (OutcomeKind.FAILED, FailureClass.APP_ERROR)
    assert (first.decision.state, first.delay_seconds) == (State.SCHEDULED, 1.0)
    assert (last.decision.state, last.decision.reason) == (State.DEAD, "attempts_exhausted")
    assert last.error["type"] == "ConnectionError"


async def test_aperform() -> None:
    done = await testing.aperform(drowsy, seconds=30)
    assert (done.outcome, done.delay_seconds, done.result) == (OutcomeKind.SNOOZED, 30, None)
