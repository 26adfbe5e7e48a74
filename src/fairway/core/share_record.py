"""Fair-share state as rows, so that debts outlive the process that kept them.

A row is (tenant, virtual time in microseconds at weight 1). Rows of tenants below 1 are the pool's
own clocks; a row of zero says that the tenant has nothing to remember. Only changed rows are
written. Credit is not restored: a failover forgets what a tenant was owed, never what it owes.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.core.share_node import SCALE, TENANT_BITS
from fairway.core.share_roster import Roster

_GROUP = 0
_PAID_CLOCK = -1
_FREE_CLOCK = -2
_ROW = SCALE << TENANT_BITS
_ROW_MAX = (1 << 63) - 1


def checkpoint(roster: Roster, now_us: int) -> list[tuple[int, int]]:
    """One pass over the nodes every few seconds is cheaper than a note at every grant."""
    rows = [(tenant, 0) for tenant in roster.forgotten if tenant not in roster.nodes]
    roster.forgotten.clear()
    for tenant, node in roster.nodes.items():
        node.accrue(now_us)
        row = min(node.v // _ROW, _ROW_MAX)
        if row != node.saved:
            node.saved = row
            rows.append((_GROUP if node is roster.group else tenant, row))
    if rows:
        rows.append((_PAID_CLOCK, roster.paid.v // _ROW))
        rows.append((_FREE_CLOCK, roster.free.v // _ROW))
    return rows


def restore(roster: Roster, rows: Iterable[tuple[int, int]], now_us: int) -> None:
    by_tenant = dict(rows)
    roster.paid.v = by_tenant.pop(_PAID_CLOCK, 0) * _ROW
    roster.free.v = by_tenant.pop(_FREE_CLOCK, 0) * _ROW
    roster.dither_until_us = now_us + roster.settings.dither_us
    roster.group.raise_to(max(by_tenant.pop(_GROUP, 0) * _ROW, roster.paid.v))
    roster.group.lift = roster.paid.v + roster.group.tenant
    for tenant, row in by_tenant.items():
        if row * _ROW > roster.queue_of(tenant).v:
            node = roster.node(tenant)
            node.raise_to(row * _ROW)
            node.saved = row
            roster.rest(node)
