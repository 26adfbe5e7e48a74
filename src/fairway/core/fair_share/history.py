"""What each tenant received and was entitled to over about the last minute.

Two marks a tenant, taken some seconds apart and replaced in turn: an answer covers the time since
the older one, between half a minute and a whole one. Tenants that are idle are forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fairway.core.ids import TenantId

HALF_US = 30_000_000


class Totals(NamedTuple):
    """A tenant's slot-time so far; neither figure ever falls."""

    tenant: TenantId
    at_us: int
    received_us: int
    entitled_us: int


class Recent(NamedTuple):
    window_us: int
    received_us: int
    entitled_us: int


class ShareHistory:
    def __init__(self) -> None:
        self._older: dict[TenantId, Totals] = {}
        self._newer: dict[TenantId, Totals] = {}
        self._turned_us = 0

    def turn(self, now_us: int) -> None:
        """Called often; replaces the older marks every half minute."""
        if now_us - self._turned_us >= HALF_US:
            self._older, self._newer, self._turned_us = self._newer, {}, now_us

    def note(self, totals: Iterable[Totals]) -> None:
        """The first mark in each half minute counts."""
        for mark in totals:
            self._newer.setdefault(mark.tenant, mark)

    def recent(self, now: Totals) -> Recent | None:
        """What a tenant got since its older mark; None when it has none."""
        mark = self._older.get(now.tenant) or self._newer.get(now.tenant)
        if mark is None or now.at_us <= mark.at_us:
            return None
        return Recent(
            now.at_us - mark.at_us,
            now.received_us - mark.received_us,
            now.entitled_us - mark.entitled_us,
        )
