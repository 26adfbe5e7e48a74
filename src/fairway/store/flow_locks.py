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
from fairway.store.connections.database import Connection, execute, is_found
from fairway.store.sql import load

_SQL = load("flow_locks.sql")


class Wait(Enum):
    """How long somebody waits for a tenant's lock, and for rows within it."""

    USUAL = "as long as the connection waits for any lock"
    SHORT = "a fourth of a second"
    NOT = "not at all; for rows, as SHORT"


_LOCKS = {
    Wait.USUAL: _SQL["lock_tenant"],
    Wait.SHORT: _SQL["lock_tenant_soon"],
    Wait.NOT: _SQL["try_lock_tenant"],
}


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
            await lock_tenant(connection, shard, tenant, wait)
            yield
    except asyncpg.LockNotAvailableError as error:
        if wait is Wait.USUAL:
            raise
        raise FlowsBusy from error


async def lock_tenant(
    connection: Connection, shard: ShardId, tenant: TenantId, wait: Wait = Wait.USUAL
) -> None:
    """For the rest of the transaction."""
    whose = {"shard": shard, "tenant": tenant}
    if not await is_found(connection, _LOCKS[wait], **whose):
        await execute(connection, _SQL["add_turn"], **whose)
        await is_found(connection, _LOCKS[wait], **whose)
