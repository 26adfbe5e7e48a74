"""A tenant: a customer, with what its tier and its own settings entitle it to, and its state.

    active ── suspend ──▶ suspended ── delete ──▶ deleted ── its time is over ──▶ forgotten
       ◀── resume ──          ◀── restore ──

Identity comes from a key, never from a body. Nothing here decides who runs next: see
`core/fair_share/fairness.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias, get_args

from fairway.core.errors import Conflict, Unavailable
from fairway.core.ids import ShardId, TenantId

Reserved = tuple[tuple[str, int], ...]  # (pool name, slots)

DEFAULT_TIER = "standard"
TENANT_SUSPENDED = "TENANT_SUSPENDED"  # the code that a suspended tenant's keys hear

SEVERAL_SHARDS = "SEVERAL_SHARDS"  # the code of what such a tenant cannot have
TENANT_MOVING = "TENANT_MOVING"  # the code that its keys hear while it moves to another shard
MOVING = "Your tenant is being moved within the platform; nothing of it is lost. Try again shortly."

TenantState: TypeAlias = Literal["active", "suspended", "deleted"]
TenantAct: TypeAlias = Literal["suspend", "resume", "delete", "restore"]
TENANT_STATES: tuple[TenantState, ...] = get_args(TenantState)

#: Act → the state that it begins in, and the one that it leads to.
_ACTS: dict[TenantAct, tuple[TenantState, TenantState]] = {
    "suspend": ("active", "suspended"),
    "resume": ("suspended", "active"),
    "delete": ("suspended", "deleted"),
    "restore": ("deleted", "suspended"),
}


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


class TenantFilter(NamedTuple):
    """Which tenants to list."""

    states: Sequence[TenantState] = ("active", "suspended")
    tier: str | None = None
    search: str | None = None  # what is somewhere in the name


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
    job_events: bool = False  # it wants to hear what becomes of its jobs
    reserved: Reserved = ()
    state: TenantState = "active"
    reason: str = ""  # of its suspension, for people
    cancels_running: bool = False  # what ran when it was suspended is asked to stop
    state_since: datetime | None = None  # None: since it was made
    shard: ShardId | None = None  # of its own; None: by its number
    moving_to: ShardId | None = None  # it is on its way there, and stands still
    moved_from: tuple[ShardId, ...] = ()  # where its rows were before; ids may name these
    part_of: TenantId | None = None  # the tenant that this is a part of, and not the first
    parts: tuple[TenantId, ...] = ()  # of one in several shards: all of them, itself first

    @property
    def is_active(self) -> bool:
        """Whether its keys open anything, and its jobs may start."""
        return self.state == "active"

    @property
    def is_still(self) -> bool:
        """Whether nothing of it is taken or started now."""
        return not self.is_active or self.moving_to is not None


def tenant_moving() -> Unavailable:
    """What is asked of a tenant that moves is asked again."""
    return Unavailable(MOVING, code=TENANT_MOVING)


def several_shards(why: str) -> Conflict:
    """What cannot be done for a tenant in several shards, or not for all of them at once."""
    return Conflict(why, code=SEVERAL_SHARDS)


def part_unavailable(part: int, count: int, error: Unavailable) -> Unavailable:
    """What is of all parts of a tenant cannot be told without one of them; says which."""
    return Unavailable(
        f"Shard {part} of your {count} (from 0 to {count - 1}) cannot be asked now: {error.message}"
        f" The header `Fairway-Part` asks each of the others alone.",
        code=error.code,
    )


def state_after(
    act: TenantAct, state: TenantState, *, may_suspend: bool = False
) -> TenantState | None:
    """Where an act leads; None: not from here. To ask again for what is so already is no error.

    Who may suspend on the way deletes what is active, too.
    """
    before, after = _ACTS[act]
    if act == "delete" and may_suspend and state == "active":
        state = "suspended"
    return after if state in (before, after) else None


def has_lapsed(since: datetime | None, now: datetime, kept: timedelta) -> bool:
    """Whether a tenant that was deleted then is past bringing back: its name may be free again."""
    return since is not None and now - since >= kept


def limits_reached(tenant: Tenant, *, jobs_left: int, depth: int, running_most: int) -> list[str]:
    """Which of its limits are used up now; `running_most` jobs run in one pool."""
    used_up = {
        "rate_per_second": jobs_left < 1,
        "depth_limit": depth >= tenant.depth_limit,
        "cap": tenant.cap is not None and running_most >= tenant.cap,
    }
    return [name for name, is_so in used_up.items() if is_so]


def suspended_sentence(reason: str) -> str:
    """What a suspended tenant's keys hear."""
    why = f" {reason.rstrip()}" if reason.strip() else " Ask whoever runs this platform."
    return f"Your tenant is suspended; nothing of it is lost.{why}"
