"""What a tenant is entitled to in one pool, and the settings of fair sharing in that pool.

Plain frozen values, checked when they are made. Shares are per mille of the shared slots, times
are microseconds. This file decides nothing: `fairness.py` does.
"""

from __future__ import annotations

from dataclasses import dataclass

WEIGHT_MAX = 100_000
FREE = "free"  # the one group there is: every free tenant is a child of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement:
    """One tenant's terms in one pool; the default is that of a standard tenant."""

    weight: int = 10
    group: str = ""  # "" competes on its own; "free" competes inside the free group's slice
    floor_share: int = 0  # per mille of the shared slots it holds at least while it has work
    cap: int | None = None  # jobs of this tenant that may run at once, never more
    reserved: int = 0  # slots nobody else may hold, except short loans

    def __post_init__(self) -> None:
        if not 1 <= self.weight <= WEIGHT_MAX:
            raise ValueError(f"weight must be 1..{WEIGHT_MAX}, not {self.weight}")
        if self.group not in ("", FREE):
            raise ValueError(f'group must be "" or "{FREE}", not "{self.group}"')
        if not 0 <= self.floor_share <= 1000:
            raise ValueError(f"floor_share must be 0..1000 per mille, not {self.floor_share}")
        if self.reserved < 0 or (self.cap is not None and self.cap < 0):
            raise ValueError("cap and reserved must not be negative")

    @property
    def is_plain(self) -> bool:
        """Weight is all it has: most tenants, and the short way through the ledger."""
        return not (self.group or self.floor_share or self.reserved) and self.cap is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSettings:
    """How one pool shares its slots; the defaults suit the short pool."""

    first_estimate_us: int = 300_000  # a run of a job type never seen
    prepay_max_us: int = 10_000_000  # no job is charged for more than this before it ran
    prepay_min_us: int = 1_000
    # Per mille of its fair slots at which a tenant waits for others. More lets debts be repaid
    # faster; less keeps long jobs that were believed short from crowding out the rest: those with
    # a share s of the pool can take (guard - 1) * s / (1 - s) from the others until they end.
    guard_share: int = 1_050
    # Once at the head, a tenant stays there for as much slot-time as the whole pool works off in
    # this time: its short jobs go out in runs, and a turn makes nobody wait for longer.
    turn_us: int = 500
    floors_max_share: int = 800  # all floors together; beyond it they shrink in proportion
    free_weight: int = 1  # of all free tenants together
    free_share: int = 50  # the slice: paid work never pushes free work below, nor free above
    free_ceiling_share: int = 1_000  # what free work may hold while no paid tenant waits
    debt_max_us: int | None = 600_000_000  # of the tenant's fair slots; None: never forgiven
    credit_max_us: int = 10_000_000  # likewise, kept for one whose jobs no worker could run
    headroom_share: int = 0  # kept for who comes and goes, from whoever holds more than its part
    visit_us: int = 10_000_000  # how long one that went away is expected back
    lend_max_us: int = 2_000_000  # enforced limit of a job that may borrow a reserved slot
    overdue_tick_us: int = 50_000
    dither_us: int = 5_000_000  # how long after a restore the unknown tenants are spread out

    def __post_init__(self) -> None:
        if not 0 < self.prepay_min_us <= self.prepay_max_us:
            raise ValueError("prepay_min_us must be above 0 and not above prepay_max_us")
        if self.guard_share < 1000:
            raise ValueError("guard_share below 1000 per mille would refuse a tenant its own share")
        if not 1 <= self.free_weight <= WEIGHT_MAX:
            raise ValueError(f"free_weight must be 1..{WEIGHT_MAX}, not {self.free_weight}")
        if self.free_share + self.floors_max_share > 1000:
            raise ValueError("the free slice and the floors together exceed the pool")
