"""What operators and machines send and get: keys, workers, health; tenants: `tenancy.py`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class NewKey(Struct, kw_only=True, forbid_unknown_fields=True):
    """A key for a tenant's programs, or for workers (of one tenant, or of all)."""

    scope: Literal["tenant", "worker"] = "tenant"
    tenant: str | None = None


class KeyAdded(Struct, kw_only=True):
    """The new key. Its text is shown here once and never again."""

    id: str
    scope: str
    tenant: str | None
    api_key: str


class WorkerView(Struct, kw_only=True):
    """One life of one worker."""

    name: str
    life: str
    tenant: str | None
    build: str
    slots: dict[str, int]
    running: dict[str, int]
    draining: bool
    silent_seconds: float
    limits: dict[str, str]


class WorkerList(Struct, kw_only=True):
    """The workers that the platform hears, by name."""

    workers: list[WorkerView]


class Health(Struct, kw_only=True, omit_defaults=True):
    """Whether the server is well, and which of its checks hold."""

    status: str
    checks: dict[str, bool] = {}
