"""Dead letters, and what restrains failing jobs, as tenants see and steer them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Raw, Struct

NULL = Raw(b"null")

PerSecond = Annotated[int, Meta(ge=1, le=10_000)]


class ReplayOne(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to replay one dead letter."""

    payload: Raw = NULL


class ReplayMany(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to replay all dead letters that the filters in the query match."""

    payload: Raw = NULL
    per_second: PerSecond = 100
    dry_run: bool = False


class DiscardMany(Struct, kw_only=True, forbid_unknown_fields=True):
    """How to discard all dead letters that the filters in the query match."""

    dry_run: bool = False


class Matched(Struct, kw_only=True):
    """What a dry run found: how many dead letters match."""

    matched: int
    is_exact: bool


class ActionView(Struct, kw_only=True):
    """A replay or a discard of many dead letters, and how far it has come."""

    id: str
    kind: str
    state: str
    type: str | None
    pool: str | None
    fingerprint: str | None
    per_second: int
    matched: int
    done: int
    created_at: datetime
    finished_at: datetime | None
    error: str | None


class ActionList(Struct, kw_only=True):
    """The newest actions."""

    actions: list[ActionView]


class FailureGroup(Struct, kw_only=True):
    """Dead letters that died of the same cause, as far as can be told."""

    fingerprint: str
    type: str
    count: int
    count_is_exact: bool
    last_job: str
    last_died_at: datetime
    error: Raw | None


class TypeCount(Struct, kw_only=True):
    """Dead letters of one job type."""

    type: str
    count: int
    count_is_exact: bool


class FailureGroups(Struct, kw_only=True):
    """Dead letters by cause and by job type, the largest first."""

    groups: list[FailureGroup]
    types: list[TypeCount]


class EventView(Struct, kw_only=True):
    """Something that a tenant should hear of."""

    id: int
    at: datetime
    kind: str
    subject: str
    detail: str


class EventList(Struct, kw_only=True):
    """A page of events, newest first; `next_cursor` is null on the last page."""

    events: list[EventView]
    next_cursor: str | None = None


class CircuitView(Struct, kw_only=True):
    """A dependency that jobs of a type are kept from, until it is back."""

    type: str
    dependency: str
    opened_at: datetime
    next_probe_seconds: float


class QuarantineView(Struct, kw_only=True):
    """A job type that mostly fails: two tries a job."""

    type: str
    since: datetime


class Restraints(Struct, kw_only=True):
    """What holds your failing jobs back at this moment."""

    circuits: list[CircuitView]
    quarantines: list[QuarantineView]
