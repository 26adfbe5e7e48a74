"""What a run wants to start goes with the report of its success, and with no other word."""

from __future__ import annotations

import msgspec
import pytest
from tests.worker.platform import ended, job_id

from fairway.core.errors import InvalidRequest
from fairway.core.run.follow_up_ids import follow_up_ids
from fairway.core.run.outcome import OutcomeKind
from fairway.sdk.handler.follow_ups import RunFollowUps
from fairway.worker.exchange.large_results import FRAME_BYTES, in_frames, weight_of
from fairway.worker.exchange.reporting import given_up
from fairway.worker.exchange.unacknowledged_results import without_result
from fairway.worker.pipe.pipe import RunReport
from fairway.worker.pipe.run_messages import with_follow_ups

NOW_MS = 1_800_000_000_000


def wanting(count: int, size_bytes: int = 10) -> RunFollowUps:
    found = RunFollowUps(job_id(1), 1, NOW_MS)
    text = msgspec.json.encode({"type": "leaf", "payload": {"x": "y" * size_bytes}})
    assert found.add([(text, None)] * count) == follow_up_ids(job_id(1), 1, NOW_MS, count)  # type: ignore[arg-type]
    return found


def success() -> RunReport:
    return with_follow_ups(ended(job_id(1)), wanting(3))


def test_a_success_carries_them() -> None:
    report = msgspec.json.decode(msgspec.json.encode(success()), type=RunReport)
    assert report.follow_ups is not None
    assert (report.follow_ups.at_ms, len(report.follow_ups.jobs)) == (NOW_MS, 3)


@pytest.mark.parametrize("kind", [kind.value for kind in OutcomeKind if kind.value != "succeeded"])
def test_no_other_end_does(kind: str) -> None:
    assert with_follow_ups(ended(job_id(1), kind), wanting(1)).follow_ups is None


def test_a_run_that_wanted_none_says_not_a_byte_more() -> None:
    plain = msgspec.json.encode(ended(job_id(1)))
    asked = with_follow_ups(ended(job_id(1)), RunFollowUps(job_id(1), 1, NOW_MS))
    assert msgspec.json.encode(asked) == plain
    assert b"follow" not in plain


def test_what_is_said_in_place_of_a_success_starts_nothing() -> None:
    assert without_result(success()).follow_ups is None
    assert given_up(success(), InvalidRequest("no")).follow_ups is None


def test_they_have_their_weight() -> None:
    heavy = [with_follow_ups(ended(job_id(n)), wanting(10, 90_000)) for n in range(1, 61)]
    assert weight_of(heavy[0]) > 900_000
    frames = list(in_frames(heavy, [], []))
    assert [one.job for frame in frames for one in frame.ended] == [one.job for one in heavy]
    assert max(sum(map(weight_of, frame.ended)) for frame in frames) <= FRAME_BYTES
