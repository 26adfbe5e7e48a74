"""What a worker reports of its runs, as values that services understand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from fairway.core.errors import InvalidRequest
from fairway.core.ids import parse_job_id
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.services.sessions.calls import Report
from fairway.wire import bounds
from fairway.wire import exchange as wire

JOB_CHARACTERS_SHOWN = 64  # of what a worker said, in an answer that refuses it
ERROR_CHARACTERS_SHOWN = 200


Failure: TypeAlias = tuple[Report, Outcome]  # any end but a success, and what it meant


def read_failure(one: wire.Report) -> Failure:
    return msgspec.structs.replace(one, job=job_of(one.job)), _outcome(one)


def unreadable(successes: Sequence[Report], flaws: Mapping[int, str]) -> list[Failure]:
    """Those whose result nobody could read have failed: no other run would bring a better one."""
    return [_failed(successes[index], flaw) for index, flaw in flaws.items()]


def _failed(one: Report, flaw: str) -> Failure:
    message = f"The result cannot be kept: {bounds.cut(flaw, bounds.FLAW_CHARACTERS_MAX)}"
    error = msgspec.json.encode({"type": "ResultInvalid", "message": message, "stack": ""})
    end = Outcome(OutcomeKind.FAILED, one.ran_us, None, FailureClass.PERMANENT, error)
    return ended_otherwise(one, end)


def ended_otherwise(one: Report, end: Outcome) -> Failure:
    """What was reported as a success is none."""
    one.kind = end.kind.value
    return one, end


def job_of(text: str) -> str:
    job = parse_job_id(text)
    if job is None:
        said = bounds.cut(text, JOB_CHARACTERS_SHOWN)
        raise InvalidRequest(f"{said!r} is no job id.", field="/job")
    return job


def _outcome(one: wire.Report) -> Outcome:
    try:
        kind = OutcomeKind(one.kind)
        failure = FailureClass(one.failure) if one.failure is not None else None
    except ValueError as error:
        said = bounds.cut(str(error), ERROR_CHARACTERS_SHOWN)
        raise InvalidRequest(said, field="/reports") from None
    if kind is OutcomeKind.FAILED and failure is None:
        raise InvalidRequest("A failed report needs its failure class.", field="/reports/failure")
    delay_ms = min(one.delay_ms, bounds.DELAY_MS_MAX)
    return Outcome(kind, one.ran_us, text_of(one.result), failure, text_of(one.error), delay_ms)


def text_of(raw: msgspec.Raw) -> bytes | None:
    text = bytes(raw)
    return None if text == b"null" else text
