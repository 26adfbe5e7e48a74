"""Tenants in turn: who has very much waiting keeps nobody else waiting for more than one of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from fairway.core.ids import TenantId

Item = TypeVar("Item")


def in_turn(
    waiting: Mapping[TenantId, Sequence[Item]], after: TenantId
) -> Iterator[tuple[TenantId, Item]]:
    """Each item with its tenant, in laps: one of every tenant that has one left.

    A lap begins with the tenant after the one that was last served. So whoever stops halfway, and
    goes on later with what waits then, leaves nobody out.
    """
    tenants = sorted(waiting, key=lambda tenant: (tenant <= after, tenant))
    index = 0
    while tenants := [tenant for tenant in tenants if len(waiting[tenant]) > index]:
        for tenant in tenants:
            yield tenant, waiting[tenant][index]
        index += 1
