"""Assertions, single runs and fixtures, as a user's own tests would use them."""

from __future__ import annotations

import logging

import pytest
from tests.sdk.sample_jobs import Score, drowsy, flaky, score, tried

from fairway import App, testing
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, OutcomeKind
from fairway.sdk.testing.clock import Clock
from fairway.sdk.testing.memory import MemoryDoor


@pytest.fixture(autouse=True)
def _forget() -> None:
    tried.clear()


# -- assertions ------------------------------------------------------------------------------------


def test_assert_enqueued_matches_in_part() -> None:
    with testing.manual():
        score.enqueue("cv1", "r1")
        handle = score.enqueue("cv2", "r1")
        assert testing.assert_enqueued(score).id == handle.id
        assert testing.assert_enqueued(score, args={"cv_id": "cv1"}).args["rubric"] == "r1"
        testing.refute_enqueued(score, args={"cv_id": "cv3"})
        testing.refute_enqueued(flaky)


def test_a_miss_shows_what_came_closest() -> None:
    with testing.manual():
        score.enqueue("cv1", "r1")
        score.enqueue("cv2")
        with pytest.raises(AssertionError) as caught:
            testing.assert_enqueued(score, args={"cv_id": "cv2", "rubric": "r1"})
    assert str(caught.value).split("\n  ") == [
        "no score was enqueued with {'cv_id': 'cv2', 'rubric': 'r1'}; nearest of 2:",
        "`cv_id` was 'cv1', not 'cv2'",
        "`rubric` was not given, not 'r1'",
    ]


def test_a_miss_without_candidates_shows_what_else_there_was() -> None:
    with testing.manual():
        with pytest.raises(AssertionError, match="no flaky was enqueued; enqueued: nothing"):
            testing.assert_enqueued(flaky)
        score.enqueue("cv1")
        score.enqueue("cv2")
        with pytest.raises(AssertionError, match="enqueued: score × 2"):
            testing.assert_enqueued(flaky)
        with pytest.raises(AssertionError, match=r"score was enqueued 2 time\(s\), the last with"):
            testing.refute_enqueued(score)


def test_expected_values_go_through_the_codec() -> None:
    @App("x").job
    def keep(score: Score) -> None: ...

    with testing.manual():
        keep.enqueue(Score(1.0))
        testing.assert_enqueued(keep, args={"score": Score(1.0)})


def test_without_a_mode_there_is_nothing_to_assert() -> None:
    with pytest.raises(RuntimeError, match="no testing mode is open"):
        testing.all_enqueued()
    with pytest.raises(RuntimeError, match="no testing mode is open"):
        testing.clock.advance(1)


# -- single runs -----------------------------------------------------------------------------------


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


# -- fixtures --------------------------------------------------------------------------------------


async def test_the_inline_fixture_reaches_async_tests(fairway_inline: MemoryDoor) -> None:
    assert await (await score.aenqueue("cv1")).aresult() == Score(1, "cv1 plain")
    assert len(fairway_inline.enqueued) == 1


def test_the_manual_fixture_reaches_sync_tests(fairway_manual: MemoryDoor) -> None:
    score.enqueue("cv1")
    assert testing.assert_enqueued(score).id == fairway_manual.enqueued[0].id


async def test_the_clock_fixture_opens_manual_mode(fairway_clock: Clock) -> None:
    handle = await flaky.aenqueue(2)
    await testing.adrain(with_scheduled=False)
    fairway_clock.advance("1h")
    assert await testing.adrain(with_scheduled=False) == {"succeeded": 1}
    assert await handle.aresult() == 2


def test_a_mode_is_closed_after_its_test() -> None:
    with pytest.raises(RuntimeError, match="no testing mode is open"):
        testing.all_enqueued()
