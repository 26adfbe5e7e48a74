"""Who changed what, from where, and what it was before: acts of people, decisions of the platform.

Retention is one setting for all; of what tenants do themselves each keeps its newest lines only, so
that nobody fills the table.
"""

from __future__ import annotations

from datetime import datetime

from fairway.core.audit import AuditEntry, AuditFilter, AuditLine
from fairway.core.ids import TenantId
from fairway.store.connections.database import Connection, execute, fetch_as
from fairway.store.sql import load

_SQL = load("audit.sql")


async def add_audit(connection: Connection, line: AuditLine) -> None:
    await execute(connection, _SQL["add_audit"], **line._asdict())


async def list_audit(connection: Connection, wanted: AuditFilter) -> list[AuditEntry]:
    """Of everybody."""
    return await fetch_as(AuditEntry, connection, _SQL["list_audit"], **wanted._asdict())


async def audit_of(
    connection: Connection, tenant: TenantId, wanted: AuditFilter
) -> list[AuditEntry]:
    """What was done to one tenant's things, by whomever."""
    return await fetch_as(
        AuditEntry, connection, _SQL["audit_of"], tenant=tenant, **wanted._asdict()
    )


async def forget_audit(connection: Connection, before: datetime, limit: int) -> int:
    return await execute(connection, _SQL["forget_audit"], before=before, limit=limit)


async def forget_floods(connection: Connection, *, among: int, kept: int, limit: int) -> int:
    """Old lines of tenants that wrote very many of the newest; answers how many went."""
    return await execute(connection, _SQL["forget_floods"], among=among, kept=kept, limit=limit)
