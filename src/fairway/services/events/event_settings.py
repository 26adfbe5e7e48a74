"""Whether a tenant hears what becomes of its jobs: its own choice, which costs it nothing unasked.

It holds for jobs that come in from then on. Other servers know within a refresh of the directory.
Each change is a line of the audit and a refresh: a tenant has so many of them in a while.
"""

from __future__ import annotations

from fairway.core.audit import PLATFORM, Act, Actor
from fairway.core.backpressure.rate_limit import Bucket
from fairway.core.errors import LimitReached
from fairway.core.ids import TenantId
from fairway.runtime.clock import Clock
from fairway.services.registry.audit_log import AuditLog
from fairway.services.registry.tenants_and_keys import Directory
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.registry.tenants import set_job_events

CHANGES_AT_ONCE = 10  # of one tenant, at one server
CHANGE_SECONDS = 6  # then one in so many
REMEMBERED_MAX = 10_000  # tenants that changed it; the first are forgotten, which favours them


class EventSettings:
    def __init__(
        self, database: Database, directory: Directory, audit_log: AuditLog, clock: Clock
    ) -> None:
        self._database = database
        self._audit_log = audit_log
        self._directory = directory
        self._clock = clock
        self._changes: dict[TenantId, Bucket] = {}

    def job_events(self, tenant: TenantId) -> bool:
        return tenant in self._directory.with_job_events

    async def turn_on(self, tenant: TenantId, actor: Actor) -> None:
        await self.set_job_events(tenant, True, actor)

    async def set_job_events(self, tenant: TenantId, wanted: bool, actor: Actor = PLATFORM) -> None:
        """In the tenant's turn; known here when this returns. Refuses who changes it too often."""
        if wanted != self.job_events(tenant):
            self._count(tenant)
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

    def _count(self, tenant: TenantId) -> None:
        now_us, burst = self._clock.now_us(), CHANGES_AT_ONCE * CHANGE_SECONDS
        changes = self._changes.setdefault(tenant, Bucket(burst, now_us))
        early_us = changes.take(CHANGE_SECONDS, 1, burst, now_us)
        if early_us:
            raise LimitReached(
                "What is written to your log was changed too often; try again in a while.",
                code="TOO_MANY_CHANGES",
                retry_after_seconds=early_us / 1e6,
            )
        if len(self._changes) > REMEMBERED_MAX:
            del self._changes[next(iter(self._changes))]
