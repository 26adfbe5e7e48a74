"""Actions on many jobs at once, and what a tenant's jobs used."""

from __future__ import annotations

from msgspec import Struct


class CancelMany(Struct, kw_only=True, forbid_unknown_fields=True):
    """Cancel every job that matches the filters of the address."""

    dry_run: bool = False


class CancelledMany(Struct, kw_only=True):
    """What became of a page of them; go on with `next_cursor` until it is null."""

    matched: int
    cancelled: int
    asked_to_stop: int
    next_cursor: str | None = None


class PoolUsage(Struct, kw_only=True):
    """What jobs of one pool used."""

    pool: str
    jobs: int
    billable_slot_seconds: float
    unbilled_slot_seconds: float


class Usage(Struct, kw_only=True):
    """Slot-time of the jobs that were submitted in some time, by pool."""

    pools: list[PoolUsage]
