"""What operators and machines send and get: tenants, keys, health."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from fairway.wire.messages import END

TENANT_NAME_PATTERN = r"^[a-z0-9][a-z0-9_.-]{0,62}" + END

TenantName = Annotated[str, Meta(pattern=TENANT_NAME_PATTERN, examples=["acme"])]
Weight = Annotated[int, Meta(ge=1, le=100_000)]
DepthLimit = Annotated[int, Meta(ge=0, le=10**12)]


class NewTenant(Struct, kw_only=True, forbid_unknown_fields=True):
    """A tenant to add; it gets its first key with the answer."""

    name: TenantName
    weight: Weight = 10
    depth_limit: DepthLimit = 10_000_000


class TenantAdded(Struct, kw_only=True):
    """The new tenant. The key is shown here once and never again."""

    id: int
    name: str
    weight: int
    depth_limit: int
    api_key: str


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
