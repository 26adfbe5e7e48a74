"""Caps on what tenants spend in a month, and how far each was told that it has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple

from fairway.core.billing.spend_cap import SpendCap, SpendState, Stage
from fairway.core.ids import ShardId, TenantId
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch_as,
    fetch_row,
    fetch_values,
    is_found,
)
from fairway.store.sql import load

_SQL = load("spend_caps.sql")


class CapRow(NamedTuple):
    tenant: TenantId
    cap_micros: int
    grace_seconds: int
    month: date
    stage: int
    reached_at: datetime | None
    now: datetime  # by the database's clock

    @property
    def cap(self) -> SpendCap:
        return SpendCap(self.cap_micros, self.grace_seconds)

    @property
    def state(self) -> SpendState:
        return SpendState(self.month, Stage(self.stage), self.reached_at)


class CapPage(NamedTuple):
    """Of tenants of these shards, after one of them."""

    shards: Sequence[ShardId]
    after: TenantId
    limit: int


async def put_cap(connection: Connection, tenant: TenantId, cap: SpendCap) -> None:
    await execute(connection, _SQL["put_cap"], tenant=tenant, **cap._asdict())


async def drop_cap(connection: Connection, tenant: TenantId) -> bool:
    """Whether there was one."""
    return await is_found(connection, _SQL["drop_cap"], tenant=tenant)


async def read_cap(connection: Connection, tenant: TenantId) -> CapRow | None:
    row = await fetch_row(connection, _SQL["read_cap"], tenant=tenant)
    return None if row is None else CapRow(*row)


async def caps_after(connection: Connection, page: CapPage) -> list[CapRow]:
    return await fetch_as(CapRow, connection, _SQL["caps_after"], **page._asdict())


async def move_cap(connection: Connection, row: CapRow, state: SpendState) -> bool:
    """False when it was moved or changed since it was read: whoever did that tells of it."""
    return await is_found(
        connection,
        _SQL["move_cap"],
        tenant=row.tenant,
        cap_micros=row.cap_micros,
        grace_seconds=row.grace_seconds,
        old_month=row.month,
        old_stage=row.stage,
        month=state.month,
        stage=state.stage.value,
        reached_at=state.reached_at,
    )


async def paused_by_caps(connection: Connection) -> list[TenantId]:
    return await fetch_values(connection, _SQL["paused_by_caps"])
