"""What happens to a tenant as a whole: its state, and what goes with it when it is deleted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from fairway.core.ids import ShardId, TenantId
from fairway.core.tenant import TenantState
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch,
    fetch_row,
    fetch_value,
    is_found,
)
from fairway.store.sql import load

_SQL = load("tenant_states.sql")


class HeldTenant(NamedTuple):
    """A tenant in a transaction that may change its state."""

    id: TenantId
    name: str
    state: TenantState
    state_since: datetime | None
    now: datetime  # by the store's clock
    reason: str
    cancels_running: bool
    parts: Sequence[TenantId]  # of one in several shards; else itself


class StateChange(NamedTuple):
    state: TenantState
    reason: str = ""
    cancels_running: bool = False


async def hold_tenant(connection: Connection, name: str) -> HeldTenant | None:
    row = await fetch_row(connection, _SQL["hold_tenant"], name=name)
    return HeldTenant(*row) if row else None


async def set_state(connection: Connection, held: HeldTenant, change: StateChange) -> None:
    await execute(connection, _SQL["set_state"], parts=held.parts, **change._asdict())


async def keys_of(connection: Connection, tenants: Collection[TenantId]) -> dict[str, TenantId]:
    """Public parts of all valid keys of these, with whose each is."""
    rows = await fetch(connection, _SQL["keys_of"], tenants=list(tenants))
    return {row["id"]: row["tenant"] for row in rows}


async def shut_out(connection: Connection, tenant: TenantId) -> int:
    """Its keys are revoked, and its logins hand nothing in any more; answers how many keys."""
    revoked = await execute(connection, _SQL["revoke_keys_of"], tenant=tenant)
    await execute(connection, _SQL["forbid_logins_of"], tenant=tenant)
    return revoked


async def remove_schedules(
    connection: Connection, shard: ShardId, tenant: TenantId, limit: int
) -> int:
    """Some of its schedules, with their runs; answers how many."""
    gone: int = await fetch_value(
        connection, _SQL["remove_schedules"], shard=shard, tenant=tenant, limit=limit
    )
    return gone


async def remove_waiting(
    connection: Connection, shard: ShardId, tenant: TenantId, limit: int
) -> int:
    """Some of what its transactions committed and nobody handed in; answers how many."""
    return await execute(
        connection, _SQL["remove_waiting"], shard=shard, tenant=tenant, limit=limit
    )


async def remove_held(connection: Connection, shard: ShardId, tenant: TenantId, limit: int) -> int:
    """Some of what was accepted here for its home in another region; answers how many calls."""
    return await execute(connection, _SQL["remove_held"], shard=shard, tenant=tenant, limit=limit)


async def remove_deliveries(
    connection: Connection, shard: ShardId, tenant: TenantId, limit: int
) -> int:
    """Its webhooks, and some of what was on its way to them; answers how many of the latter."""
    await execute(connection, _SQL["remove_webhooks"], shard=shard, tenant=tenant)
    return await execute(
        connection, _SQL["remove_deliveries"], shard=shard, tenant=tenant, limit=limit
    )


async def hold_deleted(connection: Connection, tenant: TenantId) -> bool:
    return await is_found(connection, _SQL["hold_deleted"], tenant=tenant)


async def forget_tenant(
    connection: Connection, shard: ShardId, tenant: TenantId, kept: timedelta
) -> bool:
    """Its row is gone and its name free; False, and nothing is, when it was brought back."""
    if not await is_found(connection, _SQL["hold_lapsed"], shard=shard, tenant=tenant, kept=kept):
        return False
    await execute(connection, _SQL["forget_restraints_of"], tenant=tenant)
    await execute(connection, _SQL["forget_keys_of"], tenant=tenant)
    return await execute(connection, _SQL["forget_tenant"], tenant=tenant) == 1
