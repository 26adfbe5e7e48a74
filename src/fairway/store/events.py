"""What tenants should hear of: written as it happens, read newest first, forgotten with time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fairway.core.event import Event, NewEvent
from fairway.core.ids import TenantId
from fairway.store.arrays import columns
from fairway.store.connections.database import Connection, execute, fetch
from fairway.store.sql import load

_SQL = load("events.sql")


async def add_events(connection: Connection, events: Sequence[NewEvent]) -> None:
    rows = columns(events, "tenants", "kinds", "subjects", "details")
    await execute(connection, _SQL["add_events"], **rows)


async def list_events(
    connection: Connection, tenant: TenantId, before: int, kind: str | None, limit: int
) -> list[Event]:
    rows = await fetch(
        connection, _SQL["list_events"], tenant=tenant, before=before, kind=kind, limit=limit
    )
    return [Event._make(row) for row in rows]


async def forget_events(connection: Connection, before: datetime, limit: int) -> int:
    """Remove what is past its retention; answers how many."""
    return await execute(connection, _SQL["forget_events"], before=before, limit=limit)
