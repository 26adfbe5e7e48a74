"""Keeps a tenant's outbox from growing without end: so much may wait, then its logins are refused.

Counting takes a while where there is much, so one tenant is counted at a time. What a transaction
brings is not known before it commits: one may go beyond the bound, the next hears of it.
"""

from __future__ import annotations

from collections.abc import Collection

from fairway.core.backpressure.outbox_room import WAITING_JOBS_MAX, is_full
from fairway.core.ids import ShardId, TenantId
from fairway.runtime.telemetry import logger
from fairway.store import outbox as store
from fairway.store.connections.database import Database
from fairway.store.registry import sql_logins

log = logger("outbox")

LOOK_US = 1_000_000
IDLE_LOOK_US = 10_000_000  # while nothing waits: whose was full may not be any more


class OutboxWatch:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._last: dict[ShardId, TenantId] = {}  # who was counted
        self._looked_us: dict[ShardId, int] = {}

    async def look(self, shard: ShardId, waiting: Collection[TenantId], now_us: int) -> None:
        """Count one tenant: of those with something waiting, or that were full, the next."""
        since_us = now_us - self._looked_us.get(shard, now_us - IDLE_LOOK_US)
        if since_us < (LOOK_US if waiting else IDLE_LOOK_US):
            return
        self._looked_us[shard] = now_us
        async with self._database.background() as connection:
            full = await sql_logins.full_tenants(connection, shard)
            tenant = self._next(shard, full.union(waiting))
            if tenant is None:
                return
            found = await store.measure_waiting(connection, shard, tenant, WAITING_JOBS_MAX + 1)
            was_full = tenant in full
            if is_full(found.jobs, found.size_bytes, was_full=was_full) != was_full:
                await sql_logins.mark_full(connection, tenant, is_full=not was_full)
                log.warning("outbox has room" if was_full else "outbox full", tenant=tenant)

    def _next(self, shard: ShardId, tenants: set[TenantId]) -> TenantId | None:
        """Whose turn it is to be counted."""
        if not tenants:
            return None
        last = self._last.get(shard, TenantId(-1))
        self._last[shard] = min(tenants, key=lambda tenant: (tenant <= last, tenant))
        return self._last[shard]
