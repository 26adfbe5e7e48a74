"""Fair-share state as rows, so that debts outlive the process that kept them.

A row is (tenant, debt in microseconds at weight 1 beyond its queue's virtual time); tenant 0 is the
free group. A row of zero says that there is nothing to remember. Only changed rows are written.
Credit is not kept: a failover forgets what a tenant was owed, never what it owes.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairway.core.fair_share.competitors import Competitors
from fairway.core.fair_share.virtual_time import SCALE, TENANT_BITS
from fairway.core.ids import TenantId

_GROUP = TenantId(0)
_ROW = SCALE << TENANT_BITS
_ROW_MAX = (1 << 63) - 1
_WORTH_KEEPING = 1_000_000 * _ROW  # a second of one slot: most tenants owe less, and cost no write


def checkpoint(
    competitors: Competitors, now_us: int, tenants: Iterable[TenantId] | None = None
) -> list[tuple[TenantId, int]]:
    """Rows that changed, of these tenants or of all; cheaper than a note at every grant."""
    rows = [(tenant, 0) for tenant in competitors.forgotten if tenant not in competitors.nodes]
    competitors.forgotten.clear()
    for tenant in competitors.nodes if tenants is None else tenants:
        node = competitors.nodes.get(tenant)
        if node is None:
            continue
        node.accrue(now_us)
        debt = node.v - node.tenant - node.queue.v
        row = min(debt // _ROW, _ROW_MAX) if debt * node.weight >= _WORTH_KEEPING else 0
        if row != node.saved:
            node.saved = row
            rows.append((_GROUP if node is competitors.group else tenant, row))
    return rows


def restore(competitors: Competitors, rows: Iterable[tuple[TenantId, int]], now_us: int) -> None:
    competitors.dither_until_us = now_us + competitors.settings.dither_us
    for tenant, row in rows:
        if tenant == _GROUP:
            competitors.group.raise_to(competitors.paid.v + row * _ROW)
            competitors.group.lift = competitors.paid.v + competitors.group.tenant
        elif row:
            node = competitors.node(tenant)
            node.raise_to(competitors.queue_of(tenant).v + row * _ROW)
            node.saved = row
            competitors.rest(node)
