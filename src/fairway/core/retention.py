"""What may be forgotten, and how a partition whose time has passed is taken away.

    survey ──few rows live on──▶ detach, carrying them ──▶ carry what was missed ──▶ drop
       └──many──▶ thin: delete what is old, leave the partition where it is, look again later

The lock of a detach stops every job, so only so much is carried under it. Rows that live on are
not moved while they are many: nothing can be lost on the way, and no lock is held for them.
"""

from __future__ import annotations

from typing import NamedTuple

CARRY_ROWS_MAX = 10_000  # written within some tenths of a second
CARRY_BYTES_MAX = 16 << 20
CLOCKS_APART_SECONDS_MAX = 3_600.0


class Load(NamedTuple):
    """Rows that must outlive their partition, and the bytes of their payloads and results."""

    rows: int = 0
    bytes: int = 0

    def plus(self, other: Load) -> Load:
        return Load(self.rows + other.rows, self.bytes + other.bytes)

    @property
    def is_small(self) -> bool:
        """Whether so much may be carried while everybody waits."""
        return self.rows <= CARRY_ROWS_MAX and self.bytes <= CARRY_BYTES_MAX


def may_forget(skew_seconds: float) -> bool:
    """Whether the store's clock can be believed that history is old.

    What is dropped is gone for good, and a clock that jumped a month ahead makes all of it old.
    Two machines' clocks that agree to the hour are hardly both wrong.
    """
    return abs(skew_seconds) <= CLOCKS_APART_SECONDS_MAX


def next_pages(page: int, pages: int, at_once: int) -> range:
    """The next part of a walk over a table's pages; empty at its end."""
    return range(min(page, pages), min(page + at_once, pages))
