"""What a tenant should hear of: a circuit opened, a type mostly fails, a job was late."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import TenantId


class NewEvent(NamedTuple):
    tenant: TenantId
    kind: str  # such as dependency_circuit_open
    subject: str  # what it is about: a job type, a pool, a job
    detail: str  # a sentence for people


class Event(NamedTuple):
    id: int
    at: datetime
    kind: str
    subject: str
    detail: str
