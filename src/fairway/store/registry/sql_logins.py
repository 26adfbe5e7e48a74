"""Which logins of the database hand in jobs, each for one tenant (migration 0021)."""

from __future__ import annotations

from fairway.core.ids import ShardId, TenantId
from fairway.store.connections.database import (
    Connection,
    execute,
    fetch_value,
    fetch_values,
)
from fairway.store.sql import load

_SQL = load("sql_logins.sql")


async def full_tenants(connection: Connection, shard: ShardId) -> set[TenantId]:
    """Whose logins are refused for now."""
    return set(await fetch_values(connection, _SQL["full_tenants"], shard=shard))


async def mark_full(connection: Connection, tenant: TenantId, *, is_full: bool) -> None:
    await execute(connection, _SQL["mark_full"], tenant=tenant, is_full=is_full)


async def allow_login(connection: Connection, login: str, name: str) -> TenantId | None:
    """Let a login hand in jobs of the tenant of this name; None when there is none.

    As the owner of the tables: it is given the right to call the one function that it needs.
    """
    async with connection.transaction():
        whose: TenantId | None = await fetch_value(
            connection, _SQL["allow_login"], login=login, name=name
        )
        if whose is None:
            return None
        schema = await connection.fetchval("SELECT quote_ident(current_schema())")
        role = await connection.fetchval("SELECT quote_ident($1)", login)
        await connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        await connection.execute(
            f"GRANT EXECUTE ON FUNCTION {schema}.fairway_enqueue(text) TO {role}"
        )
    return whose


async def may_create(connection: Connection, login: str) -> bool:
    """Whether a login makes functions beside our tables: it could have the owner call them."""
    return bool(await fetch_value(connection, _SQL["may_create"], login=login))


async def forbid_login(connection: Connection, login: str, name: str) -> TenantId | None:
    """The tenant, if the login did hand in its jobs; from its next call on it does not.

    What it may call stays: without a row here the function refuses it.
    """
    whose: TenantId | None = await fetch_value(
        connection, _SQL["forbid_login"], login=login, name=name
    )
    return whose
