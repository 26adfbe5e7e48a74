"""What a tenant asks about its failing jobs: what holds them back, and to be rid of it."""

from __future__ import annotations

from datetime import datetime

from fairway.core.audit import PLATFORM, Act, Actor
from fairway.core.ids import TenantId, TypeId
from fairway.services.registry.audit_log import USUAL_LOG, AuditLog
from fairway.services.transient_errors import told_if_away
from fairway.store import restraints as store
from fairway.store.connections.database import Database
from fairway.store.restraints import CircuitKey, OpenCircuit


class TenantRestraints:
    def __init__(self, database: Database, audit_log: AuditLog = USUAL_LOG) -> None:
        self._database = database
        self._audit_log = audit_log

    async def restraints(
        self, tenant: TenantId
    ) -> tuple[dict[CircuitKey, OpenCircuit], dict[TypeId, datetime]]:
        """Its circuits that are not closed, and its types in quarantine with since when."""
        async with told_if_away, self._database.quick(tenant) as connection:
            circuits = await store.circuits_of(connection, tenant)
            return circuits, await store.quarantines_of(connection, tenant)

    async def lift_quarantine(
        self, tenant: TenantId, type_: TypeId, subject: str, actor: Actor = PLATFORM
    ) -> bool:
        """Whether it was in quarantine; every owner sees within its next look."""
        async with (
            told_if_away,
            self._database.quick(tenant) as connection,
            connection.transaction(),
        ):
            was_on = await store.lift_quarantine(connection, tenant, type_)
            if was_on:
                sides = {"quarantined": True}, {"quarantined": False}
                act = Act("lift_quarantine", subject, tenant, *sides)
                await self._audit_log.add(connection, actor, act)
        return was_on
