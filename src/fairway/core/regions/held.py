"""What may be held for a home in another region: a call's jobs, an unfinished job, a schedule."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.regions.homes import HomeVersion


class HeldKind(IntEnum):
    SUBMISSION = 0
    JOB = 1
    SCHEDULE = 2


class SentTo(NamedTuple):
    """Whose rows are sent to which region, and the version of the home that this is by."""

    shard: ShardId
    tenant: TenantId
    region: str
    under: HomeVersion


class HeldCall(NamedTuple):
    """A call's jobs, as they are sent to the home."""

    shard: ShardId
    tenant: TenantId
    id: JobId  # of the first
    last_id: JobId
    jobs: int
    body: bytes
    offered_to: str | None  # the home that may have it, for no answer came
    offered_under: HomeVersion | None  # as it was known when it was sent there
