"""The lock of a tenant's flows: one at a time counts in them, or changes who waits for whom.

People wait for it as for any lock. Whoever works for all tenants waits shortly or not at all, and
comes again: one tenant's lock stops nobody else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum

import asyncpg

from fairway.core.ids import ShardId, TenantId
from fairway.store.connections.database import Connection, execute, fetch_value
from fairway.store.sql import load

_SQL = load("flow_locks.sql")


class Wait(Enum):
    """How long somebody waits for a tenant's lock, and for rows within it."""

    USUAL = "as long as the connection waits for any lock"
    SHORT = "a fourth of a second"
    NOT = "not at all; for rows, as SHORT"


class FlowsBusy(Exception):
    """Somebody else counts in the tenant's flows, or holds one of its jobs: come again."""


@asynccontextmanager
async def locked(
    connection: Connection, shard: ShardId, tenant: TenantId, wait: Wait
) -> AsyncIterator[None]:
    """A transaction with the tenant's lock; `FlowsBusy` when it, or a row, is another's for longer
    than `wait`."""
    try:
        async with connection.transaction():
            if wait is Wait.NOT:
                await _try_lock(connection, shard, tenant)
            elif wait is Wait.SHORT:
                await execute(connection, _SQL["lock_tenant_soon"], shard=shard, tenant=tenant)
            else:
                await lock_tenant(connection, shard, tenant)
            yield
    except asyncpg.LockNotAvailableError as error:
        if wait is Wait.USUAL:
            raise
        raise FlowsBusy from error


async def lock_tenant(connection: Connection, shard: ShardId, tenant: TenantId) -> None:
    """For the rest of the transaction."""
    await execute(connection, _SQL["lock_tenant"], shard=shard, tenant=tenant)


async def _try_lock(connection: Connection, shard: ShardId, tenant: TenantId) -> None:
    asked = _SQL["try_lock_tenant"]
    if not await fetch_value(connection, asked, shard=shard, tenant=tenant):
        raise FlowsBusy
