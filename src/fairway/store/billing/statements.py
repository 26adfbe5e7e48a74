"""Months that are closed: how far each shard's books are, and the statements that were kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple

from fairway.core.ids import ShardId, TenantId
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch_as,
    fetch_row,
    fetch_value,
    fetch_values,
    is_found,
)
from fairway.store.sql import load

_SQL = load("statements.sql")


class Books(NamedTuple):
    """Of one shard."""

    shard: ShardId
    closed_until: datetime
    stated_until: datetime
    now: datetime  # by the database's clock


class KeptStatement(NamedTuple):
    closed_at: datetime
    lines: bytes  # JSON text


async def read_books(connection: Connection, shards: Sequence[ShardId]) -> list[Books]:
    return await fetch_as(Books, connection, _SQL["read_books"], shards=shards)


async def close_until(
    connection: Connection, shard: ShardId, since: datetime, until: datetime
) -> bool:
    """Whether it was this call that closed it."""
    return await is_found(connection, _SQL["close_until"], shard=shard, since=since, until=until)


async def stated_until(
    connection: Connection, shard: ShardId, since: datetime, until: datetime, looked_at: datetime
) -> bool:
    """Whether it was this call that said so; its tenants were looked up after that moment."""
    given = {"shard": shard, "since": since, "until": until, "looked_at": looked_at}
    return await is_found(connection, _SQL["stated_until"], **given)


class ShardTenants(NamedTuple):
    """Tenants of one shard, after one of them, that were there before a moment."""

    shard: ShardId
    after: TenantId
    before: datetime


async def tenants_to_state(
    connection: Connection, which: ShardTenants, limit: int
) -> list[TenantId]:
    return await fetch_values(connection, _SQL["tenants_to_state"], **which._asdict(), limit=limit)


async def keep_statement(
    connection: Connection, tenant: TenantId, month: date, lines: bytes
) -> None:
    """The first that is kept stays; keeping it again does nothing."""
    await execute(connection, _SQL["keep_statement"], tenant=tenant, month=month, lines=lines)


async def read_statement(
    connection: Connection, tenant: TenantId, month: date
) -> KeptStatement | None:
    row = await fetch_row(connection, _SQL["read_statement"], tenant=tenant, month=month)
    return None if row is None else KeptStatement(*row)


async def closed_until(connection: Connection, shard: ShardId) -> datetime | None:
    """None while nobody has looked at its books."""
    found: datetime | None = await fetch_value(connection, _SQL["closed_until"], shard=shard)
    return found


async def tenant_created_at(connection: Connection, tenant: TenantId) -> datetime | None:
    found: datetime | None = await fetch_value(connection, _SQL["tenant_created_at"], tenant=tenant)
    return found
