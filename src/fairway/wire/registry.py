"""What operators send and get about pools and job types; and the audit of who changed what."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from fairway.wire.exchange import ShortText
from fairway.wire.messages import END, PoolName, TimeoutSeconds

LABEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.:/=-]{0,127}" + END
Label = Annotated[str, Meta(pattern=LABEL_PATTERN, examples=["gpu"])]
Seconds = Annotated[float, Meta(ge=1, le=24 * 3600)]


class PoolTerms(Struct, kw_only=True, forbid_unknown_fields=True):
    """How a pool runs its jobs; what is left out has the value of the medium pool."""

    slots: Annotated[int, Meta(ge=1, le=100_000)] = 8
    lease_mode: Literal["lazy", "durable"] = "durable"
    lease_seconds: Seconds = 300.0
    run_mode: Literal["loop", "thread", "process"] | None = None
    checkpoint: Literal["none", "optional", "expected"] = "optional"
    attempts: Annotated[int, Meta(ge=1, le=10_000)] = 3
    pickup_target_seconds: Annotated[float, Meta(gt=0, le=7 * 24 * 3600)] = 5.0
    labels: Annotated[list[Label], Meta(max_length=32)] = []
    reserved_per_mille: Annotated[int, Meta(ge=0, le=950)] = 800


class PoolView(PoolTerms, kw_only=True):
    """A pool. `fits_seconds` is set for pools of duration, whose job types are measured."""

    name: PoolName
    fits_seconds: float | None = None


class PoolList(Struct, kw_only=True):
    """Every pool there is."""

    pools: list[PoolView]


class TypeSettings(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is said of a job type; what is left out is not said."""

    pool: PoolName | None = None
    timeout_seconds: TimeoutSeconds | None = None
    attempts: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    dependency: ShortText = ""
    warm_key: ShortText = ""
    version: ShortText = ""
    schema: dict[str, Any] | None = None


class TypeView(TypeSettings, kw_only=True):
    """A job type: what was said of it, and what was measured."""

    name: str
    registered: bool
    measured_pool: PoolName | None = None
    measured_p95_seconds: float | None = None
    moved_at: datetime | None = None


class TypeList(Struct, kw_only=True):
    """Every job type there is, by name."""

    job_types: list[TypeView]


class AuditView(Struct, kw_only=True):
    """One change: who made it, of what."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str


class AuditList(Struct, kw_only=True):
    """Changes, newest first; `next_before` is null on the last page."""

    entries: list[AuditView]
    next_before: int | None = None
