"""What is known of a job type: what it was registered with, and what was measured since."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import PoolId, TypeId


class TypeFacts(NamedTuple):
    """What whoever wrote the handler says of it; None and empty: nothing."""

    pool: PoolId | None = None
    timeout_ms: int | None = None
    attempts_max: int | None = None
    dependency: str = ""  # what it leans on, such as stripe
    warm_key: str = ""  # what a worker keeps warm for it: an image, a model
    version: str = ""
    schema: bytes | None = None  # JSON Schema of the payload


class JobType(NamedTuple):
    id: TypeId
    name: str
    facts: TypeFacts
    is_registered: bool  # by a worker or by hand; else a job of it was submitted and no more
    measured_pool: PoolId | None  # where the clock says it belongs; beats what was declared
    measured_p95_ms: int | None
    moved_at: datetime | None
    is_shared: bool = False  # a shared worker or an operator said it: it counts for no tenant
    renounced_at: datetime | None = None  # when a tenant was last found not to use it any more
    is_let_go: bool = False  # nobody uses it: it can be had back for some days
