"""From the times that a request names to a wish that the platform understands.

Refused: two due times at once, a last moment before the due time, a rule without a last moment,
moments that no calendar reaches. What is in the past is fine: it is due now.
"""

from __future__ import annotations

from datetime import UTC, datetime

from fairway.core.errors import InvalidRequest
from fairway.core.scheduling.timing import BY_LABEL, Wish
from fairway.core.unix_time import EPOCH, to_unix_ms
from fairway.wire.messages import JobRequest, Reschedule

LAST = datetime(2200, 1, 1, tzinfo=UTC)


def is_plainly_due(request: JobRequest) -> bool:
    """Whether a job names no time at all: nearly all do not, so this is all that they cost."""
    return (
        request.execute_at is None
        and request.delay_seconds is None
        and request.not_after is None
        and request.on_late is None
    )


def wish_of(request: JobRequest) -> Wish:
    due = due_wish(request)
    if request.not_after is None:
        if request.on_late is not None:
            raise InvalidRequest("on_late needs a not_after to be late for.", field="/on_late")
        return due
    not_after_ms = checked_ms(request.not_after, "/not_after")
    if due.due_ms is not None and not_after_ms < due.due_ms:
        raise InvalidRequest("not_after lies before execute_at.", field="/not_after")
    rule = None if request.on_late is None else int(BY_LABEL[request.on_late])
    return due._replace(not_after_ms=not_after_ms, on_late=rule)


def due_wish(request: JobRequest | Reschedule) -> Wish:
    if request.execute_at is None:
        delay_ms = round((request.delay_seconds or 0) * 1000)
        return Wish(delay_ms=delay_ms, exact=request.exact)
    if request.delay_seconds is not None:
        raise InvalidRequest("Give execute_at or delay_seconds, not both.", field="/delay_seconds")
    return Wish(due_ms=checked_ms(request.execute_at, "/execute_at"), exact=request.exact)


def checked_ms(moment: datetime, field: str) -> int:
    if not EPOCH <= moment < LAST:
        raise InvalidRequest("The moment must lie between 1970 and 2200.", field=field)
    return to_unix_ms(moment)
