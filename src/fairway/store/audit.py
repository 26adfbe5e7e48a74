"""Who changed what, for operators: what they did by hand, and what the platform decided."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from fairway.store.connections.database import Connection, execute, fetch_as
from fairway.store.sql import load

_SQL = load("audit.sql")

PLATFORM = "platform"  # the actor of what nobody asked for


class AuditEntry(NamedTuple):
    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str


async def add_audit(
    connection: Connection, actor: str, action: str, subject: str, detail: str
) -> None:
    await execute(
        connection, _SQL["add_audit"], actor=actor, action=action, subject=subject, detail=detail
    )


async def list_audit(connection: Connection, before: int, limit: int) -> list[AuditEntry]:
    """Newest first."""
    return await fetch_as(AuditEntry, connection, _SQL["list_audit"], before=before, limit=limit)


async def forget_audit(connection: Connection, before: datetime, limit: int) -> int:
    return await execute(connection, _SQL["forget_audit"], before=before, limit=limit)
