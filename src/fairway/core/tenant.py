"""A tenant: a customer, with what its tier and its own settings entitle it to.

Identity comes from a key, never from a body. Nothing here decides who runs next: see
`core/fair_share/fairness.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.core.ids import TenantId

Reserved = tuple[tuple[str, int], ...]  # (pool name, slots)

DEFAULT_TIER = "standard"


class Tier(NamedTuple):
    """What a tenant is entitled to unless it has values of its own."""

    name: str
    weight: int
    fair_group: str  # "free": its tenants compete inside the free group's slice
    floor_share: int  # per mille of the shared slots a tenant with work holds at least
    cap: int | None  # jobs of one tenant at once in one pool
    rate_per_second: int
    burst: int
    depth_limit: int


class TenantSettings(NamedTuple):
    """A tenant's tier and the values of its own; None takes the tier's."""

    tier: str = DEFAULT_TIER
    weight: int | None = None
    depth_limit: int | None = None
    cap: int | None = None
    rate_per_second: int | None = None
    burst: int | None = None
    reserved: Reserved = ()


class Tenant(NamedTuple):
    """A tenant with the values in force."""

    id: TenantId
    name: str
    weight: int
    depth_limit: int
    tier: str = DEFAULT_TIER
    fair_group: str = ""
    floor_share: int = 0
    cap: int | None = None
    rate_per_second: int = 100
    burst: int = 1000
    reserved: Reserved = ()
