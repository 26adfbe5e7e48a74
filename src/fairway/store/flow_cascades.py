"""Ends of members that were given up and are still to be counted: flows behind flows, in parts."""

from __future__ import annotations

from fairway.core.flows import Change
from fairway.core.ids import ShardId, TenantId
from fairway.store.connections.database import Connection, execute, fetch, fetch_value
from fairway.store.flow_locks import Wait, locked
from fairway.store.flows import FlowEffects, apply_changes
from fairway.store.sql import load

_SQL = load("flow_cascades.sql")

OWED_AT_ONCE = 500


async def next_owed_tenant(
    connection: Connection, shard: ShardId, after: TenantId
) -> TenantId | None:
    """The next tenant with ends that are still to be counted, in the order of their numbers."""
    found: TenantId | None = await fetch_value(
        connection, _SQL["next_owed_tenant"], shard=shard, after=after
    )
    return found


async def count_owed(connection: Connection, shard: ShardId, tenant: TenantId) -> FlowEffects:
    """Go on where `apply_changes` stopped; `FlowsBusy` when the tenant's lock is another's."""
    effects, given = FlowEffects(), {"shard": shard, "tenant": tenant}
    async with locked(connection, shard, tenant, Wait.NOT):
        rows = await fetch(connection, _SQL["read_owed"], **given, limit=OWED_AT_ONCE)
        await execute(connection, _SQL["clear_owed"], **given, ids=[row["id"] for row in rows])
        changes = {(tenant, row["id"]): Change(cancelled=row["owed"]) for row in rows}
        await apply_changes(connection, shard, changes, effects)
    return effects
