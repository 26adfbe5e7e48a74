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
    limits = [KeyLimit(each.key, each.at_most) for each in wanted]
    if len({limit.key for limit in limits}) < len(limits):
        raise InvalidRequest("A key stands twice among the limits; say it once.", field="/limits")
    return pack(limits)
