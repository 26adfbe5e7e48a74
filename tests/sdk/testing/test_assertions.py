"""Assertions about what was enqueued, as a user's own tests would make them."""

from __future__ import annotations

import pytest
from tests.sdk.sample_jobs import Score, flaky, score

from fairway import App, testing


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
