"""Who a key stands for, and what is wished of a new one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.backpressure.connections import STAFF
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant


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
        """Who holds what this key takes: a tenant, or STAFF."""
        return STAFF if self.tenant is None else self.tenant.id


class KeyWish(NamedTuple):
    """What is wished of a new key; None does not narrow it."""

    name: str = ""
    expires_at: datetime | None = None
    permissions: Sequence[str] | None = None
    pools: Sequence[str] | None = None
    types: Sequence[str] | None = None
    only_tenants: Sequence[TenantId] | None = None
