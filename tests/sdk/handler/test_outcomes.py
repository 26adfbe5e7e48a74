"""What a handler returns or raises, and what it means."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairway import Cancel, DependencyFailed, Fail, InvalidArguments, Retry, Snooze
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.sdk.handler.outcomes import (
    MESSAGE_BYTES_MAX,
    NAME_BYTES_MAX,
    STACK_BYTES_MAX,
    TimeLimitPassed,
    outcome_of,
)
from fairway.wire.bounds import DELAY_MS_MAX
from fairway.wire.exchange import DelayMilliseconds


def raised(error: BaseException) -> BaseException:
    """The error with a stack."""
    try:
        raise error
    except BaseException as caught:
        return caught


def document(end: Outcome) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(end.error or b"{}")
    return decoded


def test_a_value_is_success() -> None:
    assert outcome_of({"a": 1}) == Outcome(OutcomeKind.SUCCEEDED, result=b'{"a":1}')
    assert outcome_of(None).result == b"null"


def test_an_exception_that_is_returned_is_a_value() -> None:
    end = outcome_of(ValueError("x"), encode=lambda value: str(value).encode())
    assert end.kind is OutcomeKind.SUCCEEDED


@pytest.mark.parametrize("how", ["value", "error"])
def test_snooze_and_cancel_may_be_returned_or_raised(how: str) -> None:
    end_of: dict[str, Callable[[Exception], Outcome]] = {
        "value": lambda said: outcome_of(said),
        "error": lambda said: outcome_of(error=said),
    }
    snoozed = end_of[how](Snooze("5m"))
    cancelled = end_of[how](Cancel("no longer wanted"))
    assert snoozed == Outcome(OutcomeKind.SNOOZED, delay_ms=300_000)
    assert cancelled.kind is OutcomeKind.CANCELLED
    assert document(cancelled)["message"] == "no longer wanted"


@pytest.mark.parametrize("asked", [1e10, 1e300, "9999999999d"])
def test_no_delay_is_longer_than_the_wire_takes(asked: float | str) -> None:
    """One that is refused there would cost the worker its call, and all that is in it."""
    snoozed = outcome_of(Snooze(asked))
    failed = outcome_of(error=raised(DependencyFailed("stripe", retry_after=asked)))
    retried = outcome_of(error=raised(OSError("x")), retry=Retry(3, backoff=[asked]))
    for end in (snoozed, failed, retried):
        msgspec.convert(end.delay_ms, DelayMilliseconds)
        assert end.delay_ms == DELAY_MS_MAX


@pytest.mark.parametrize("asked", [float("nan"), float("inf"), -5, 10**400])
def test_a_delay_that_is_none_is_refused_where_it_is_said(asked: float) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        Snooze(asked)
    with pytest.raises(ValueError, match="is no duration"):
        DependencyFailed("stripe", retry_after=asked)


def test_names_are_cut_and_need_not_be_text() -> None:
    kind = type("E" * 100_000, (DependencyFailed,), {})
    said = document(outcome_of(error=raised(kind("s" * 100_000))))
    assert len(said["type"]) == len(said["dependency"]) == NAME_BYTES_MAX
    odd: Any = 7
    assert document(outcome_of(error=raised(DependencyFailed(odd))))["dependency"] == "7"


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (ValueError("x"), FailureClass.APP_ERROR),
        (SystemExit(1), FailureClass.APP_ERROR),
        (TimeoutError("of the handler's own"), FailureClass.APP_ERROR),
        (Fail("never"), FailureClass.PERMANENT),
        (InvalidArguments("bad"), FailureClass.PERMANENT),
        (DependencyFailed("stripe"), FailureClass.DEPENDENCY),
        (TimeLimitPassed("2 s"), FailureClass.TIMEOUT),
        (MemoryError(), FailureClass.RESOURCE),
    ],
)
def test_failures_have_classes(error: BaseException, failure: FailureClass) -> None:
    end = outcome_of(error=error)
    assert (end.kind, end.failure) == (OutcomeKind.FAILED, failure)


def test_a_dependency_names_itself_and_its_pause() -> None:
    end = outcome_of(error=DependencyFailed("stripe", retry_after="30s"))
    assert end.delay_ms == 30_000
    assert document(end)["dependency"] == "stripe"
    assert document(end)["message"] == "stripe failed"


def test_an_error_tells_type_message_and_stack() -> None:
    told = document(outcome_of(error=raised(KeyError("cv1"))))
    assert (told["type"], told["message"]) == ("KeyError", "'cv1'")
    assert "in raised" in told["stack"]


def test_long_texts_are_cut_and_the_cause_is_kept() -> None:
    told = document(outcome_of(error=raised(ValueError("é" * 100_000))))
    assert len(told["message"].encode()) <= MESSAGE_BYTES_MAX
    assert len(told["stack"].encode()) <= STACK_BYTES_MAX
    assert told["stack"].rstrip().endswith("é")


def test_a_message_of_megabytes_costs_nothing_and_leaves_the_frames() -> None:
    """It took 50 ms of the loop that all jobs of a runner share."""
    cause = raised(LookupError("k" * (20 << 20)))
    error = ValueError("line\n" * (4 << 20))
    error.__cause__ = cause
    error.add_note("n" * (20 << 20))
    raised(error)
    began = time.process_time()
    told = document(outcome_of(error=error))
    assert time.process_time() - began < 0.03  # a quarter of a second and more without the bound
    assert told["stack"].count("in raised") == 2
    assert "direct cause" in told["stack"]


def test_an_error_without_readable_text_is_still_reported() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert "no readable text" in document(outcome_of(error=Mute()))["message"]


def test_a_result_that_cannot_be_encoded_fails_for_good() -> None:
    end = outcome_of(object())
    assert (end.kind, end.failure) == (OutcomeKind.FAILED, FailureClass.PERMANENT)
    assert document(end)["type"] == "TypeError"


def test_retry_on_makes_other_errors_final() -> None:
    retry = Retry(5, on=(ConnectionError,))
    assert outcome_of(error=ConnectionError(), retry=retry).failure is FailureClass.APP_ERROR
    assert outcome_of(error=ConnectionResetError(), retry=retry).failure is FailureClass.APP_ERROR
    assert outcome_of(error=ValueError(), retry=retry).failure is FailureClass.PERMANENT
    assert outcome_of(error=TimeLimitPassed(), retry=retry).failure is FailureClass.TIMEOUT


def test_backoff_goes_by_attempt_and_repeats_its_last_pause() -> None:
    retry = Retry(backoff=("1s", "10s"))
    pauses = [outcome_of(error=ValueError(), retry=retry, attempt=n).delay_ms for n in (1, 2, 3)]
    assert pauses == [1000, 10_000, 10_000]
    assert outcome_of(error=Fail(), retry=retry).delay_ms == 0


def test_retry_needs_an_attempt() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Retry(0)


def test_bounds_are_of_classes_that_have_one() -> None:
    assert Retry(3, most={"timeout": 2}).most == {"timeout": 2}
    with pytest.raises(ValueError, match="none of timeout, resource"):
        Retry(3, most={"app_error": 2})
    with pytest.raises(ValueError, match="at least 1"):
        Retry(3, most={"timeout": 0})


def test_an_end_travels_between_processes() -> None:
    end = outcome_of(error=ValueError("x"))
    assert pickle.loads(pickle.dumps(end)) == end  # noqa: S301  (our own bytes)


@pytest.mark.parametrize("said", [Snooze("5m"), DependencyFailed("stripe", "down", retry_after=3)])
def test_sayings_survive_pickling(said: Snooze | DependencyFailed) -> None:
    copied = pickle.loads(pickle.dumps(said))  # noqa: S301  (our own bytes)
    assert copied.delay_ms == said.delay_ms
    assert str(copied) == str(said)
