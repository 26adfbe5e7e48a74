"""The second wall between tenants: as whom a connection asks, and which rows that one sees.

Every table with rows of tenants has a policy (migration 0013): only those of the tenant that the
connection is set to are there. Two roles; neither can log in, owns anything or changes a table:

    fairway_tenant    answers one tenant's request. Policies hold, and without a tenant set there
                      are no rows at all.
    fairway_server    does the server's own work, in batches that serve many tenants at once. It
                      passes policies by: COPY knows none, and a batch has no one tenant.

What changes tables (migrations, partitions, statistics) is done by their owner, on connections of
its own. `prove` asks the store itself whether all of this holds; a server does not start otherwise.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

import asyncpg

from fairway.core.errors import Unavailable
from fairway.store.at_hand import Use

Connection: TypeAlias = Any

SERVER, TENANT = "fairway_server", "fairway_tenant"

ALL = "SELECT, INSERT, UPDATE, DELETE"

#: What a tenant's request may do, to its own rows where they are anybody's.
TENANTS_MAY = {
    "checkpoints": "SELECT",
    "circuits": "SELECT, UPDATE, DELETE",
    "dead_letter_actions": "SELECT, INSERT, UPDATE",
    "events": "SELECT, INSERT",
    "idempotency": "SELECT",
    "job_types": "SELECT",
    "jobs": "SELECT, UPDATE",
    "pauses": ALL,
    "pools": "SELECT",
    "quarantines": "SELECT, UPDATE, DELETE",
    "schedule_runs": ALL,
    "schedules": ALL,
    "shards": "SELECT, UPDATE (shard)",  # to lock a row; a policy lets none be changed
    "tenant_types": "SELECT",
    "tenants": "SELECT",
    "tiers": "SELECT",
}

#: What the server reads and writes. Days of jobs are reached through `jobs` alone; what was carried
#: on from one is swept by name.
TABLES = (
    "api_keys", "audit", "checkpoints", "circuits", "cluster", "dead_letter_actions", "events",
    "fair_share", "idempotency", "job_types", "jobs", "jobs_carried", "migrations", "pauses",
    "pools", "quarantines", "schedule_runs", "schedules", "sessions", "shards", "tenant_types",
    "tenants", "tiers",
)  # fmt: skip

_PRESENT = """
SELECT c.oid, c.relname AS name, EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'tenant' AND NOT attisdropped
) OR c.relname = 'tenants' AS has_tenants
FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
"""

_LACKING = f"""
SELECT NOT (pg_has_role('{SERVER}', 'MEMBER') AND pg_has_role('{TENANT}', 'MEMBER')) OR EXISTS (
    SELECT FROM unnest($1::text[]) AS t WHERE NOT has_table_privilege('{SERVER}', t, 'DELETE')
)
"""


class Scope(NamedTuple):
    """As whom a connection asks."""

    role: str
    tenant: int | None = None


FOR_ALL = Scope(SERVER)


class AsksAs:
    """What is known of one connection; None: it may be anything."""

    __slots__ = ("scope",)

    def __init__(self) -> None:
        self.scope: Scope | None = None

    async def become(self, connection: Connection, scope: Scope) -> None:
        """One round trip, unless it asked as this one before."""
        if self.scope == scope:
            return
        self.scope = None  # not known, should this fail
        await connection.execute(
            "SELECT set_config('role', $1, false), set_config('fairway.tenant', $2, false)",
            scope.role,
            "" if scope.tenant is None else str(scope.tenant),
        )
        self.scope = scope


class UseAs:
    """`async with`: a connection that asks as somebody; None: as whoever it logged in as."""

    __slots__ = ("_scope", "_use")

    def __init__(self, use: Use, scope: Scope | None) -> None:
        self._use = use
        self._scope = scope

    async def __aenter__(self) -> Connection:
        connection = await self._use.__aenter__()
        if self._scope is not None:
            try:
                await connection.asks_as.become(connection, self._scope)
            except BaseException as error:
                await self._use.__aexit__(type(error), error, error.__traceback__)
                raise
        return connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._use.__aexit__(kind, error, traceback)


# -- roles -------------------------------------------------------------------------------------


async def ensure_roles(connection: Connection) -> None:
    """As the owner of the tables, once the schema is there: what is missing is made."""
    try:
        if await lacks(connection):
            async with connection.transaction():
                await _make_roles(connection)
    except asyncpg.InsufficientPrivilegeError as error:
        raise Unavailable(
            f"The roles {SERVER} and {TENANT} cannot be made: {error}. Let an administrator run:"
            f" CREATE ROLE {SERVER} NOLOGIN BYPASSRLS; CREATE ROLE {TENANT} NOLOGIN;"
            f" GRANT {SERVER}, {TENANT} TO CURRENT_USER (the role that owns the tables). Or start"
            " with FAIRWAY_ROW_SECURITY=false, without a second wall between tenants.",
            code="NO_ROLES",
        ) from error


async def lacks(connection: Connection) -> bool:
    """Whether a role, or what one may do, is missing."""
    names = await connection.fetch(
        "SELECT FROM pg_roles WHERE rolname = ANY($1::text[])", [SERVER, TENANT]
    )
    return len(names) < 2 or bool(await connection.fetchval(_LACKING, TABLES))


async def _make_roles(connection: Connection) -> None:
    for role, kind in ((SERVER, "BYPASSRLS"), (TENANT, "NOBYPASSRLS")):
        await connection.execute(
            f"""
            DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
                    CREATE ROLE {role} NOLOGIN {kind};
                END IF;
                IF NOT pg_has_role('{role}', 'MEMBER') THEN
                    GRANT {role} TO CURRENT_USER;
                END IF;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- made at this moment
            END $$
            """
        )
    schema = await connection.fetchval("SELECT quote_ident(current_schema())")
    await connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {SERVER}, {TENANT}")
    await connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {SERVER}")
    await connection.execute(f"GRANT {ALL} ON {', '.join(TABLES)} TO {SERVER}")
    for table, may in TENANTS_MAY.items():
        await connection.execute(f"GRANT {may} ON {table} TO {TENANT}")


# -- proof -------------------------------------------------------------------------------------


async def prove(connection: Connection) -> None:
    """Ask the store whether the wall stands, as each of the roles; a sentence where it does not."""
    try:
        for role in (TENANT, SERVER):
            await connection.asks_as.become(connection, Scope(role))
            if found := await _too_mighty(connection):
                raise _no_wall(f"the role {role} {found}")
        await connection.asks_as.become(connection, Scope(TENANT))
        rows = await connection.fetch(
            f"SELECT name FROM ({_PRESENT}) AS t WHERE has_tenants"
            " AND has_table_privilege(oid, 'SELECT') AND NOT row_security_active(oid)"
        )
    except asyncpg.InsufficientPrivilegeError as error:
        raise _no_wall(f"{error}") from error
    if rows:
        raise _no_wall(f"policies do not hold on {', '.join(row['name'] for row in rows)}")


async def _too_mighty(connection: Connection) -> str | None:
    row = await connection.fetchrow(
        """
        SELECT rolsuper, rolcreaterole, rolname <> $1 AND rolbypassrls AS bypasses,
               has_schema_privilege(current_schema(), 'CREATE') AS creates,
               EXISTS (SELECT FROM pg_class WHERE relowner = pg_roles.oid) AS owns
        FROM pg_roles WHERE rolname = current_user
        """,
        SERVER,
    )
    faults = {
        "rolsuper": "is a superuser",
        "rolcreaterole": "may make roles",
        "bypasses": "passes policies by",
        "creates": "may make tables",
        "owns": "owns tables",
    }
    return next((text for name, text in faults.items() if row[name]), None)


def _no_wall(why: str) -> Unavailable:
    return Unavailable(
        f'There is no second wall between tenants in the database: {why}. See "The database as a'
        ' second wall" in docs/OPERATING.md, or start with FAIRWAY_ROW_SECURITY=false.',
        code="NO_ROW_SECURITY",
    )
