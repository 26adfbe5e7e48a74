"""What is simulated, as values: who sends what, how runs behave, how long the ways take.

A `Kind` is a job type with a pool and a fate. Everything a run will do is known before it begins,
so that two simulations of the same work differ only by what the platform decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.tenant import Tenant, Tier

#: As `store/schema.sql` founds them; a test holds the two together.
TIERS = {
    "free": Tier("free", 1, "free", 0, None, 10, 100, 10_000_000),
    "standard": Tier("standard", 10, "", 0, None, 100, 1_000, 10_000_000),
    "pro": Tier("pro", 100, "", 10, None, 10_000, 100_000, 10_000_000),
    "enterprise": Tier("enterprise", 1_000, "", 0, None, 100_000, 1_000_000, 10_000_000),
}


class Kind(NamedTuple):
    """A job type: its pool as declared, and what its runs meet."""

    type: TypeId
    name: str
    pool: PoolId
    dependency: str = ""  # runs fail while it is down
    breaks: bool = False  # runs fail while the type's release is broken


class Arrival(NamedTuple):
    """One job that somebody hands in."""

    at_us: int
    tenant: TenantId
    kind: Kind
    run_us: int
    due_us: int = 0  # of one that is scheduled for later; 0: at once
    fails: bool = False  # its first run raises
    counts: bool = True  # False: it was there before, and its wait says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Overheads:
    """What the ways between the parts take, as `docs/SIZING.md` and the lab measured them.

    From being handed in to its handler a job took 4.9 ms (p50) at half load: a commit and a reply.
    """

    commit_us: int = 3_000  # a group on its way to disk: submissions, outcomes, durable leases
    reply_us: int = 1_500  # from a grant to the handler's first line
    report_us: int = 1_500  # from the handler's last line to the dispatcher
    read_us: int = 3_000  # of the store into the windows
    worker_start_us: int = 15_000_000  # from the wish for a worker to its hello


def tenant_of(number: int, name: str, tier: str = "standard", **own: int) -> Tenant:
    """With the terms of its tier, but for those of its own: weight, cap, floor_share."""
    terms = TIERS[tier]
    return Tenant(
        id=TenantId(number),
        name=name,
        tier=tier,
        weight=own.get("weight", terms.weight),
        depth_limit=terms.depth_limit,
        fair_group=terms.fair_group,
        floor_share=own.get("floor_share", terms.floor_share),
        cap=own.get("cap", terms.cap),
    )
