"""Who a key stands for, and what is wished of a new one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from fairway.core.backpressure.connections import STAFF
from fairway.core.ids import TenantId
from fairway.core.keys import permitted
from fairway.core.tenant import Tenant
from fairway.store.registry.tenants import StoredKey

Name = TypeVar("Name")


class Principal(NamedTuple):
    """Who a key stands for. Identity comes from here and from nowhere else."""

    key_id: str
    scope: str
    tenant: Tenant | None
    may: frozenset[str]  # its permissions
    pools: frozenset[str] | None = None  # a worker's key: it serves these only
    types: frozenset[str] | None = None
    name: str = ""  # for people
    only_tenants: frozenset[TenantId] | None = None  # a shared worker's key: jobs of these only

    @property
    def holder(self) -> TenantId:
        """Who holds what this key takes: a tenant, or STAFF, also where an operator acts for a
        tenant: whoever helps takes nothing of it."""
        if self.tenant is None or self.scope == "operator":
            return STAFF
        return self.tenant.id

    @classmethod
    def of(cls, key: StoredKey, tenant: Tenant | None) -> Principal:
        """Who a key stands for, with its tenant as it is known."""
        bounds = _only(key.pools), _only(key.types), key.name, _only(key.only_tenants)
        return cls(key.id, key.scope, tenant, permitted(key.scope, key.permissions), *bounds)


def _only(names: Iterable[Name] | None) -> frozenset[Name] | None:
    return None if names is None else frozenset(names)


class KeyWish(NamedTuple):
    """What is wished of a new key; None does not narrow it."""

    name: str = ""
    expires_at: datetime | None = None
    permissions: Sequence[str] | None = None
    pools: Sequence[str] | None = None
    types: Sequence[str] | None = None
    only_tenants: Sequence[TenantId] | None = None
