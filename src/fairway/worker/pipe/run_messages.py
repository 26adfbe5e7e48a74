"""What a runner says: how a run ended, and what its app declares, in the words of the pipe.

Pure: results that are too large to keep, or are no JSON, become failures here, and nothing is sent.
A handler may return bytes of its own as if they were JSON (`msgspec.Raw`); so whatever goes into a
frame is parsed first: what is wrong with it must fail its own job, not the frame with all others.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from fairway.core.ids import Epoch
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.sdk.app import App
from fairway.sdk.handler.follow_ups import RunFollowUps
from fairway.sdk.handler.outcomes import encode_error
from fairway.wire.bounds import DELAY_MS_MAX, RESULT_BYTES_MAX
from fairway.wire.exchange import NULL, FollowUps, Lease
from fairway.wire.payload import DEPTH_MAX, brackets
from fairway.worker.pipe.pipe import Declared, RunReport

SUCCEEDED = OutcomeKind.SUCCEEDED.value
_AROUND = b"[" * 50, b"]" * 50  # more than is around it in a frame, whose reader may be deep, too
_parse = msgspec.json.Decoder(Raw).decode


def report_of(lease: Lease, end: Outcome, ran_us: int) -> RunReport:
    if end.result is not None and len(end.result) > RESULT_BYTES_MAX:
        end = _too_large(len(end.result))
    if end.kind is OutcomeKind.SUCCEEDED and end.result is not None:  # mostly, so it is quick
        ended = RunReport(job=lease.job, epoch=lease.epoch, kind=SUCCEEDED, ran_us=ran_us)
        if end.result == b"null":  # what many return, and what is left out on the way
            return ended
        try:
            ended.result = parsed(end.result)
            return ended
        except ValueError as error:
            end = _no_json(error)
    return RunReport(
        job=lease.job,
        epoch=lease.epoch,
        kind=end.kind.value,
        ran_us=ran_us,
        result=NULL if end.result is None else Raw(end.result),
        failure=None if end.failure is None else end.failure.value,
        error=NULL if end.error is None else Raw(end.error),
        delay_ms=_within_bounds(end.delay_ms),
    )


def with_follow_ups(
    ended: RunReport, follow_ups: RunFollowUps, traceparent: str | None = None
) -> RunReport:
    """What the run wanted to start goes with its success; else it is dropped with the run."""
    gathered = follow_ups.close()
    if gathered and ended.kind == SUCCEEDED:
        texts = [Raw(one.text) for one in gathered]
        ended.follow_ups = FollowUps(at_ms=follow_ups.at_ms, jobs=texts, traceparent=traceparent)
    return ended


def parsed(text: bytes) -> Raw:
    """JSON text, ready for a frame; ValueError when it is none, or nested too deep for one."""
    if not text.isascii():
        text.decode()
    try:
        if brackets(text) > DEPTH_MAX:
            _parse(_AROUND[0] + text + _AROUND[1])
        return _parse(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _no_json(error: ValueError) -> Outcome:
    document = {"type": "ResultInvalid", "message": f"The result is no JSON: {error}", "stack": ""}
    text = msgspec.json.encode(document)
    return Outcome(OutcomeKind.FAILED, failure=FailureClass.PERMANENT, error=text)


def unreadable(job: str, epoch: Epoch, why: str) -> RunReport:
    """A job whose orders could not be read: it never began."""
    document = {"type": "OrdersUnreadable", "message": why, "stack": ""}
    return RunReport(
        job=job,
        epoch=epoch,
        kind=OutcomeKind.FAILED.value,
        ran_us=0,
        failure=FailureClass.PERMANENT.value,
        error=Raw(msgspec.json.encode(document)),
    )


def _within_bounds(delay_ms: object) -> int:
    """A handler's own kind of error may say anything here; nonsense leaves it to the platform."""
    return min(max(delay_ms, 0), DELAY_MS_MAX) if isinstance(delay_ms, int) else 0


def _too_large(size: int) -> Outcome:
    message = (
        f"The result has {size} bytes; at most {RESULT_BYTES_MAX} are kept: store it elsewhere."
    )
    error = msgspec.json.encode({"type": "ResultTooLarge", "message": message, "stack": ""})
    return Outcome(OutcomeKind.FAILED, failure=FailureClass.PERMANENT, error=error)


def defect(error: BaseException) -> Outcome:
    return Outcome(OutcomeKind.FAILED, failure=FailureClass.APP_ERROR, error=encode_error(error))


def declared_by(app: App) -> list[Declared]:
    return [
        Declared(
            name=job.name,
            mode=job.run_mode,
            is_mode_chosen=job.is_mode_chosen,
            timeout_ms=job.terms.timeout_ms,
            limits=job.limits,
            cancel_grace_ms=job.cancel_grace_ms,
            runaway_after_ms=job.runaway_after_ms,
            terms=Raw(msgspec.json.encode(job.terms)),
        )
        for job in app.jobs.values()
    ]
