"""A runner is believed in what concerns its own jobs, in words that there are."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw
from tests.worker.platform import ended

from fairway.core.ids import Epoch
from fairway.worker.pipe.message_checks import checked_message
from fairway.worker.pipe.pipe import Checkpoint, Progress, RunnerMessage, RunReport
from fairway.worker.pipe.run_messages import parsed

OURS = {"a": 1, "b": 1}


def progress(job: str, text: bytes = b"1") -> Progress:
    return Progress(job=job, progress=Raw(text))


def test_an_end_under_a_lost_lease_does_not_speak_for_the_next() -> None:
    """The same job came back to the same runner: what it says of the first run is no end of it."""
    early, late = ended("a"), ended("a", epoch=2)
    assert checked_message(RunnerMessage(ended=[early, late]), {"a": 2}).ended == [late]
    assert checked_message(RunnerMessage(ended=[early]), {"a": 2}).ended == []


def test_words_about_other_jobs_are_left_out() -> None:
    state = [Checkpoint(job=job, epoch=Epoch(1), number=1, state=Raw(b"1")) for job in ("a", "x")]
    words = RunnerMessage(
        ended=[ended("x"), ended("b")], progress=[progress("y"), progress("a")], checkpoints=state
    )
    left = checked_message(words, OURS)
    assert [one.job for one in left.ended] == ["b"]
    assert [one.job for one in left.progress] == ["a"]
    assert [one.job for one in left.checkpoints] == ["a"]


@pytest.mark.parametrize(
    "end",
    [ended("a", "exploded"), ended("a", "failed"), ended("a", "failed", failure="bad luck"),
     ended("a", "cancelled", failure="timeout")],
)  # fmt: skip
def test_an_end_that_there_is_not_is_garbage(end: RunReport) -> None:
    with pytest.raises(ValueError):
        checked_message(RunnerMessage(ended=[end]), OURS)


@pytest.mark.parametrize(
    "text",
    [b'"\xff"', b'"\\u0000"', b"9" * 5001, b"1e999", b'{"a":1,"a":2}', b"[" * 99 + b"]" * 99],
)
def test_progress_that_the_platform_would_refuse_is_a_note(text: bytes) -> None:
    (shown,) = checked_message(RunnerMessage(progress=[progress("a", text)]), OURS).progress
    assert list(msgspec.json.decode(shown.progress)) == ["omitted"]


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"}",
        b"1,2",
        b'{"a":1},"b":2',
        b'"\xff"',
        b"[" * 5000 + b"]" * 5000,
        b"[" * 970 + b"]" * 970,
    ],
)
def test_what_is_no_json_never_comes_into_a_frame(bad: bytes) -> None:
    with pytest.raises(ValueError):
        parsed(bad)


@pytest.mark.parametrize("good", [b"1", b'"\xc3\xa9"', b"[" * 900 + b"]" * 900, b'{"a":[1,{}]}'])
def test_json_comes_through_as_it_is(good: bytes) -> None:
    assert bytes(parsed(good)) == good
