"""What a runner says of a run: readable, within bounds, or a failure of that run alone."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worker.odd_jobs import app
from tests.worker.platform import lease

from fairway import App, Retry
from fairway.core.ids import Epoch
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.wire.bounds import DELAY_MS_MAX, RESULT_BYTES_MAX
from fairway.wire.exchange import NULL
from fairway.wire.job_type import TypeTerms
from fairway.worker.pipe.pipe import RunnerMessage
from fairway.worker.pipe.run_messages import (
    declared_by,
    defect,
    parsed,
    report_of,
    unreadable,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(JSON)
def test_a_result_comes_as_it_was_returned(value: object) -> None:
    text = msgspec.json.encode(value)
    ended = report_of(lease(1), Outcome(OutcomeKind.SUCCEEDED, result=text), 5)
    assert (ended.kind, ended.failure, ended.ran_us) == ("succeeded", None, 5)
    assert bytes(ended.result) == text


@given(st.binary(max_size=40))
def test_whatever_bytes_a_handler_returns_the_frame_can_be_read(foreign: bytes) -> None:
    ended = report_of(lease(1), Outcome(OutcomeKind.SUCCEEDED, result=foreign), 5)
    frame = msgspec.json.encode(RunnerMessage(ended=[ended]))
    (read,) = msgspec.json.decode(frame, type=RunnerMessage).ended
    assert read.kind in ("succeeded", "failed")
    if read.kind == "failed":
        assert read.failure == "permanent"
        assert msgspec.json.decode(read.error)["type"] == "ResultInvalid"


def test_a_result_that_is_too_large_is_a_failure_with_a_reason() -> None:
    text = b'"%s"' % (b"x" * (RESULT_BYTES_MAX - 1))
    ended = report_of(lease(1), Outcome(OutcomeKind.SUCCEEDED, result=text), 5)
    assert (ended.kind, ended.failure, ended.result) == ("failed", "permanent", NULL)
    assert f"{RESULT_BYTES_MAX + 1} bytes" in msgspec.json.decode(ended.error)["message"]


def test_what_is_nested_too_deep_for_a_frame_is_no_json() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    with pytest.raises(ValueError, match="nested too deep"):
        parsed(deep)


@pytest.mark.parametrize(
    ("said", "kept"),
    [(5, 5), (-1, 0), (DELAY_MS_MAX + 1, DELAY_MS_MAX), ("soon", 0), (None, 0), (1.5, 0)],
)
def test_a_delay_is_kept_within_bounds_whatever_it_is(said: object, kept: int) -> None:
    end = Outcome(OutcomeKind.SNOOZED, delay_ms=said)  # type: ignore[arg-type]  # that is the point
    assert report_of(lease(1), end, 0).delay_ms == kept


def test_an_error_of_ours_and_orders_that_cannot_be_read_are_told_apart() -> None:
    ours = report_of(lease(1), defect(KeyError("nobody")), 0)
    assert ours.failure == FailureClass.APP_ERROR
    never = unreadable(lease(1).job, Epoch(3), "no good")
    assert (never.failure, never.epoch, never.ran_us) == ("permanent", 3, 0)
    assert msgspec.json.decode(never.error)["message"] == "no good"


def test_what_an_app_declares_is_what_the_platform_is_told() -> None:
    declared = {one.name: one for one in declared_by(app)}
    assert declared.keys() == app.jobs.keys()
    assert (declared["lone"].mode, declared["lone"].is_mode_chosen) == ("process", True)
    frame = msgspec.json.encode(RunnerMessage(declared=list(declared.values())))
    assert msgspec.json.decode(frame, type=RunnerMessage).declared == list(declared.values())


def test_each_count_of_failures_has_its_own_word_on_the_wire() -> None:
    counts = {"timeout": 1, "resource": 2, "dependency": 3, "worker_crash": 4}
    counted = App("x")

    @counted.job(retry=Retry(5, most=counts))
    def nap() -> None: ...

    (declared,) = declared_by(counted)
    terms = msgspec.json.decode(declared.terms, type=TypeTerms)
    said = (terms.timeouts_max, terms.resources_max, terms.dependencies_max, terms.deliveries_max)
    assert said == (1, 2, 3, 4)
    assert terms.attempts_max == 5
