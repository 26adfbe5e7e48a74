"""Dead letters as the parts of the platform hand them around: filters and causes."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import JobId, PoolId, TypeId


class DeadFilter(NamedTuple):
    """Which dead letters; ids are bounds in time (`since` ≤ id < `before`)."""

    before: str
    since: str
    type: TypeId | None = None
    pool: PoolId | None = None
    fingerprint: int | None = None
    tag: str | None = None


class DeathCause(NamedTuple):
    """Dead letters with one fingerprint: how many, and the newest job of them."""

    fingerprint: int
    matched: int
    id: JobId
    type: TypeId
    error: bytes | None
    finished_at: datetime
