"""What operators and machines send and get: keys, health. Tenants are in `tenancy.py`."""

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


class Health(Struct, kw_only=True, omit_defaults=True):
    """Whether the server is well, and which of its checks hold."""

    status: str
    checks: dict[str, bool] = {}
