"""What is usual for tenants, from the hours of history, beside what they do now."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import TenantId
from fairway.store.connections.database import Connection, fetch_as
from fairway.store.sql import load

_SQL = load("alarm_baselines.sql")


class BusyTenant(NamedTuple):
    tenant: TenantId
    recent: float  # jobs in this hour or the last one
    usual: float  # in an hour


async def busy_tenants(
    connection: Connection, since: datetime, recent: datetime, least: float, limit: int
) -> list[BusyTenant]:
    """`recent` is the beginning of the last whole hour, `since` of the day before it."""
    return await fetch_as(
        BusyTenant,
        connection,
        _SQL["busy_tenants"],
        since=since,
        recent=recent,
        least=least,
        limit=limit,
    )
