"""Tenants, tiers, limits and pauses on the wire: what operators set and tenants can see."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from fairway.wire.messages import END, JobType, PoolName

TENANT_NAME_PATTERN = r"^[a-z0-9][a-z0-9_.-]{0,62}" + END
TIER_NAME_PATTERN = r"^[a-z][a-z0-9_-]{0,31}" + END

TenantName = Annotated[str, Meta(pattern=TENANT_NAME_PATTERN, examples=["acme"])]
TierName = Annotated[str, Meta(pattern=TIER_NAME_PATTERN, examples=["pro"])]
Weight = Annotated[int, Meta(ge=1, le=100_000)]
DepthLimit = Annotated[int, Meta(ge=0, le=10**12)]
Cap = Annotated[int, Meta(ge=1, le=1_000_000)]
Rate = Annotated[int, Meta(ge=1, le=1_000_000)]
Burst = Annotated[int, Meta(ge=1, le=10_000_000)]
Slots = Annotated[int, Meta(ge=0, le=1_000_000)]
PerMille = Annotated[int, Meta(ge=0, le=1_000)]


class NewTenant(Struct, kw_only=True, forbid_unknown_fields=True):
    """A tenant to add; it gets its first key with the answer. What is left out is its tier's."""

    name: TenantName
    tier: TierName = "standard"
    weight: Weight | None = None
    depth_limit: DepthLimit | None = None
    cap: Cap | None = None
    rate_per_second: Rate | None = None
    burst: Burst | None = None
    reserved: dict[str, Slots] = {}


class TenantChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to change; what is left out stays, null takes the tier's value again."""

    tier: TierName | UnsetType = UNSET
    weight: Weight | UnsetType | None = UNSET
    depth_limit: DepthLimit | UnsetType | None = UNSET
    cap: Cap | UnsetType | None = UNSET
    rate_per_second: Rate | UnsetType | None = UNSET
    burst: Burst | UnsetType | None = UNSET
    reserved: dict[str, Slots] | UnsetType = UNSET


class TenantView(Struct, kw_only=True):
    """A tenant with the values in force: its own, else its tier's."""

    id: int
    name: str
    tier: str
    weight: int
    floor_per_mille: int
    cap: int | None
    reserved: dict[str, int]
    rate_per_second: int
    burst: int
    depth_limit: int


class TenantAdded(TenantView, kw_only=True):
    """The new tenant. The key is shown here once and never again."""

    api_key: str


class TierTerms(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a tenant of the tier gets unless it has values of its own."""

    weight: Weight
    group: Literal["", "free"] = ""
    floor_per_mille: PerMille = 0
    cap: Cap | None = None
    rate_per_second: Rate = 100
    burst: Burst = 1_000
    depth_limit: DepthLimit = 10_000_000


class TierView(TierTerms, kw_only=True):
    """A tier as it is in force."""

    name: TierName


class TierList(Struct, kw_only=True):
    """All tiers, the lightest first."""

    tiers: list[TierView]


class Pause(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which jobs must not start: those that match all that is named."""

    tenant: TenantName | None = None
    type: JobType | None = None
    pool: PoolName | None = None


class PauseList(Struct, kw_only=True):
    """Pauses in force."""

    pauses: list[Pause]


class Limits(Struct, kw_only=True):
    """What a tenant may do, how much of it is used, and what was refused."""

    tier: str
    weight: int
    rate_per_second: int
    burst: int
    jobs_left: int
    depth: int
    depth_limit: int
    cap: int | None
    payload_bytes_max: int
    payload_values_max: int
    batch_jobs_max: int
    batch_values_max: int
    refused: dict[str, int]
