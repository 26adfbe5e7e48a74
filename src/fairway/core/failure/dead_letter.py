"""Dead letters as the parts of the platform hand them around: filters, causes, actions on many."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import JobId, PoolId, TenantId, TypeId


class DeadFilter(NamedTuple):
    """Which dead letters; ids are bounds in time (`since` ≤ id < `before`)."""

    before: str
    since: str
    type: TypeId | None = None
    pool: PoolId | None = None
    fingerprint: int | None = None


class DeathCause(NamedTuple):
    """Dead letters with one fingerprint: how many, and the newest job of them."""

    fingerprint: int
    matched: int
    id: JobId
    type: TypeId
    error: bytes | None
    finished_at: datetime


class Action(NamedTuple):
    """A replay or a discard of many, and how far it has come."""

    id: str
    tenant: TenantId
    kind: str
    state: str  # running | done | aborted | failed
    type: TypeId | None
    pool: PoolId | None
    fingerprint: int | None
    since: str
    before: str
    payload: bytes | None
    per_second: int
    matched: int
    done: int
    cursor: str
    created_at: datetime
    finished_at: datetime | None
    error: str | None  # why it failed

    @property
    def wanted(self) -> DeadFilter:
        return DeadFilter(self.before, self.since, self.type, self.pool, self.fingerprint)
