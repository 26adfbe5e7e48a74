"""Whether a tenant hears what becomes of its jobs: its own choice, which costs it nothing unasked.

It holds for jobs that come in from then on. Other servers know within a refresh of the directory.
"""

from __future__ import annotations

from fairway.core.audit import PLATFORM, Act, Actor
from fairway.core.ids import TenantId
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.registry.tenants import set_job_events


class EventSettings:
    def __init__(self, database: Database, directory: Directory, audit_log: AuditLog) -> None:
        self._database = database
        self._audit_log = audit_log
        self._directory = directory

    def job_events(self, tenant: TenantId) -> bool:
        return tenant in self._directory.with_job_events

    async def turn_on(self, tenant: TenantId, actor: Actor) -> None:
        await self.set_job_events(tenant, True, actor)

    async def set_job_events(self, tenant: TenantId, wanted: bool, actor: Actor = PLATFORM) -> None:
        """In the tenant's turn, however often it asks; known here when this returns."""
        act = Act(
            "set_job_events",
            self._directory.name_of(tenant),
            tenant,
            {"job_events": not wanted},
            {"job_events": wanted},
        )
        async with (
            told_if_away,
            self._database.writing(tenant) as connection,
            connection.transaction(),
        ):
            is_changed = await set_job_events(connection, tenant, wanted)
            if is_changed:
                await self._audit_log.add(connection, actor, act)
        if is_changed:
            await self._directory.refresh()
