"""Rows and tables that somebody holds, and who stands before them: waiting that tests can count."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.postgres import connected
from tests.services.platform_room import until

from fairway.core.ids import ShardId
from fairway.core.tenant import Tenant
from fairway.store.connections.database import Connection
from fairway.store.flow_locks import lock_tenant


@asynccontextmanager
async def held_rows(dsn: str, *jobs: str) -> AsyncIterator[Connection]:
    """Whoever would change these jobs meanwhile waits at their rows; for 2 s at most."""
    async with connected(dsn) as connection, connection.transaction():
        await connection.execute(
            "SELECT FROM jobs WHERE id = ANY($1::uuid[]) FOR UPDATE", list(jobs)
        )
        yield connection


@asynccontextmanager
async def held_flows(dsn: str, *tenants: Tenant) -> AsyncIterator[Connection]:
    """Nobody counts in these tenants' flows meanwhile; there is one shard."""
    async with connected(dsn) as connection:
        for tenant in tenants:  # their rows are there, as of any who have flows
            await lock_tenant(connection, ShardId(0), tenant.id)
    async with connected(dsn) as connection, connection.transaction():
        for tenant in tenants:
            await lock_tenant(connection, ShardId(0), tenant.id)
        yield connection


@asynccontextmanager
async def held_table(dsn: str, table: str) -> AsyncIterator[Connection]:
    """Whoever would read this table meanwhile waits; for 2 s at most."""
    async with connected(dsn) as connection, connection.transaction():
        await connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield connection


async def standing(connection: Connection, pool: str) -> int:
    """How many connections of this pool stand at a lock now.

    A transaction sees the connections of its first look for as long as it lasts: one opened
    since would never be counted, so the look is taken anew each time.
    """
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    found: int = await connection.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND split_part(application_name, '/', 1) = $1 AND wait_event_type = 'Lock'",
        pool,
    )
    return found


async def somebody_stands(connection: Connection, pool: str) -> None:
    async def is_there() -> bool:
        return await standing(connection, pool) > 0

    await until(is_there)
