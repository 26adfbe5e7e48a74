"""Tiers and pauses: what operators decide about tenants, job types and pools at run time."""

from __future__ import annotations

from fairway.core.backlog.holds import Hold
from fairway.core.ids import PoolId, TenantId, TypeId
from fairway.core.tenant import Tier
from fairway.store.connections.database import Connection, execute, fetch_as, fetch_value
from fairway.store.sql import load

_SQL = load("tiers.sql")


async def all_tiers(connection: Connection) -> list[Tier]:
    return await fetch_as(Tier, connection, _SQL["all_tiers"])


async def put_tier(connection: Connection, tier: Tier) -> None:
    """The tier's values hold for its tenants as soon as every server has read them again."""
    async with connection.transaction():
        await execute(connection, _SQL["put_tier"], **tier._asdict())
        await execute(connection, _SQL["touch_tenants_of_tier"], name=tier.name)


async def all_pauses(connection: Connection) -> list[Hold]:
    return await fetch_as(Hold, connection, _SQL["all_pauses"])


async def pauses_of(connection: Connection, tenant: TenantId) -> list[Hold]:
    return await fetch_as(Hold, connection, _SQL["pauses_of"], tenant=tenant)


async def count_other_pauses(connection: Connection, hold: Hold) -> int:
    """How many its tenant has besides this one."""
    others: int = await fetch_value(connection, _SQL["count_other_pauses"], **hold._asdict())
    return others


async def pause(connection: Connection, tenant: TenantId, type_id: TypeId, pool: PoolId) -> bool:
    """Whether it was not paused before."""
    return await execute(connection, _SQL["pause"], tenant=tenant, type=type_id, pool=pool) == 1


async def resume(connection: Connection, tenant: TenantId, type_id: TypeId, pool: PoolId) -> bool:
    """Whether it was paused."""
    return await execute(connection, _SQL["resume"], tenant=tenant, type=type_id, pool=pool) == 1
