"""What may be held for a home in another region: a call's jobs, an unfinished job, a schedule."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from fairway.core.ids import JobId, ShardId, TenantId


class HeldKind(IntEnum):
    SUBMISSION = 0
    JOB = 1
    SCHEDULE = 2


class HeldCall(NamedTuple):
    """A call's jobs, as they are sent to the home."""

    shard: ShardId
    tenant: TenantId
    id: JobId  # of the first
    last_id: JobId
    jobs: int
    body: bytes
    offered_to: str | None  # the home that may have it, for no answer came
