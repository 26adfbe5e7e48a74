"""From the limits that a request names to those that a job carries."""

from __future__ import annotations

from collections.abc import Sequence

from fairway.core.backlog.key_limits import LIMITS_PER_JOB, KeyLimit, pack
from fairway.core.errors import InvalidRequest
from fairway.wire.key_limits import JobLimit


def packed_limits(wanted: Sequence[JobLimit]) -> bytes:
    if len(wanted) > LIMITS_PER_JOB:
        raise InvalidRequest(
            f"A job has at most {LIMITS_PER_JOB} limits; this one has {len(wanted)}.",
            field="/limits",
        )
    limits = [_understood(each, f"/limits/{place}") for place, each in enumerate(wanted)]
    if len({(limit.key, limit.per_ms) for limit in limits}) < len(limits):
        raise InvalidRequest("A limit of one key stands twice; say it once.", field="/limits")
    return pack(limits)


def _understood(each: JobLimit, field: str) -> KeyLimit:
    match each:
        case JobLimit(at_most=int(most), count=None, per_seconds=None):
            return KeyLimit(each.key, most)
        case JobLimit(at_most=None, count=int(most), per_seconds=float(seconds)):
            return KeyLimit(each.key, most, round(seconds * 1000))
    raise InvalidRequest(
        "A limit has at_most (so many at once), or count and per_seconds (so many starts in a"
        " while).",
        field=field,
    )
