"""Operators who act for a tenant: which tenant, whether that is possible, and a line in its audit.

What is changed so is in the audit anyway, as the operator's act. That an operator looks at a
tenant's things is told once in an hour for each key, before it sees anything.
"""

from __future__ import annotations

from fairway.core.audit import Act, Actor
from fairway.core.errors import Forbidden, NotFound
from fairway.core.ids import TenantId
from fairway.core.tenant import TENANT_SUSPENDED, Tenant
from fairway.runtime.clock import Clock
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.refusals import part_named
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database

TOLD_AGAIN_US = 3_600_000_000
REMEMBERED_MAX = 10_000
TOLD = "An operator acts for this tenant by the header Fairway-Tenant; told once an hour."


class Visits:
    def __init__(
        self, database: Database, directory: Directory, clock: Clock, audit_log: AuditLog
    ) -> None:
        self._database = database
        self._directory = directory
        self._clock = clock
        self._audit_log = audit_log
        self._told_us: dict[tuple[str, TenantId], int] = {}  # key and tenant → when it was told

    async def begin(self, name: str, actor: Actor, *, is_reading: bool) -> Tenant:
        """The tenant that this operator acts for; things of a suspended one are only read."""
        tenant = await self._tenant(name)
        if tenant.state == "suspended" and not is_reading:
            raise Forbidden(
                f"The tenant {name!r} is suspended: its things can be read, and changed once it is"
                f" resumed. {tenant.reason}".rstrip(),
                code=TENANT_SUSPENDED,
            )
        await self._tell(actor, tenant)
        return tenant

    async def _tenant(self, name: str) -> Tenant:
        known = self._directory
        if name not in known.tenant_ids:
            await known.refresh()  # another server may have made it a moment ago
        number = known.tenant_ids.get(name)
        if number is None:
            raise NotFound(f"There is no tenant {name[:64]!r}.", field="Fairway-Tenant")
        tenant = known.tenants[number]
        if tenant.state == "deleted":
            raise NotFound(
                f"The tenant {name!r} is deleted: restore it first.", field="Fairway-Tenant"
            )
        if tenant.part_of is not None:
            raise part_named(name, "Fairway-Tenant")
        return tenant

    async def _tell(self, actor: Actor, tenant: Tenant) -> None:
        visit, now_us = (actor.id, tenant.id), self._clock.now_us()
        if now_us - self._told_us.get(visit, -TOLD_AGAIN_US) < TOLD_AGAIN_US:
            return
        act = Act("visit_tenant", tenant.name, tenant.id, detail=TOLD)
        async with told_if_away, self._database.people() as connection:
            await self._audit_log.add(connection, actor, act)
        self._told_us.pop(visit, None)
        self._told_us[visit] = now_us  # the one told last is the last
        if len(self._told_us) > REMEMBERED_MAX:
            del self._told_us[next(iter(self._told_us))]
