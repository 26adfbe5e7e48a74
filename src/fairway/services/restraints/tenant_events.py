"""What a tenant asks about its failing jobs: what holds them back, and what it was told."""

from __future__ import annotations

from datetime import datetime

from fairway.core.event import Event
from fairway.core.ids import TenantId, TypeId
from fairway.services.transient_errors import told_if_away
from fairway.store import restraints as store
from fairway.store.connections.database import Database
from fairway.store.events import list_events
from fairway.store.restraints import CircuitKey, OpenCircuit


class TenantEvents:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def restraints(
        self, tenant: TenantId
    ) -> tuple[dict[CircuitKey, OpenCircuit], dict[TypeId, datetime]]:
        """Its circuits that are not closed, and its types in quarantine with since when."""
        async with told_if_away, self._database.quick(tenant) as connection:
            circuits = await store.circuits_of(connection, tenant)
            return circuits, await store.quarantines_of(connection, tenant)

    async def lift_quarantine(self, tenant: TenantId, type_: TypeId) -> bool:
        """Whether it was in quarantine; every owner sees within its next look."""
        async with told_if_away, self._database.quick(tenant) as connection:
            return await store.lift_quarantine(connection, tenant, type_)

    async def events(
        self, tenant: TenantId, before: int, kind: str | None, limit: int
    ) -> list[Event]:
        async with told_if_away, self._database.quick(tenant) as connection:
            return await list_events(connection, tenant, before, kind, limit)
