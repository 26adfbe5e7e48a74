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
SELECT EXISTS (
    SELECT FROM unnest($1::text[]) AS t WHERE NOT has_table_privilege('{SERVER}', t, 'DELETE')
) OR EXISTS (
    SELECT FROM unnest($2::text[]) AS t WHERE NOT has_table_privilege('{TENANT}', t, 'SELECT')
)
"""

#: Of those roles that there are: one that may be set is of use, whoever made it.
_USABLE = "SELECT rolname FROM pg_roles WHERE rolname = ANY($1::text[]) AND pg_has_role(oid, 'SET')"


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


async def make_roles(connection: Connection) -> None:
    """As the owner of the tables, before anything is changed: who may not hears what to do."""
    missing = await _missing(connection)
    try:
        for role in missing:
            await connection.execute(_make(role, "BYPASSRLS" if role == SERVER else "NOBYPASSRLS"))
    except asyncpg.InsufficientPrivilegeError as error:
        raise await _no_roles(connection, missing, error) from error


async def _missing(connection: Connection) -> list[str]:
    rows = await connection.fetch(_USABLE, [SERVER, TENANT])
    usable = {row["rolname"] for row in rows}
    return [role for role in (SERVER, TENANT) if role not in usable]


def _make(role: str, kind: str) -> str:
    return f"""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN
                BEGIN
                    CREATE ROLE {role} NOLOGIN {kind};
                EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;  -- at this moment
                END;
            END IF;
            GRANT {role} TO CURRENT_USER;
        END $$
    """


async def _no_roles(
    connection: Connection, missing: list[str], error: asyncpg.PostgresError
) -> Unavailable:
    login = await connection.fetchval("SELECT quote_ident(session_user)")
    rows = await connection.fetch("SELECT rolname FROM pg_roles WHERE rolname = ANY($1)", missing)
    there = {row["rolname"] for row in rows}
    kinds = {SERVER: "NOLOGIN BYPASSRLS", TENANT: "NOLOGIN"}
    steps = [f"CREATE ROLE {role} {kinds[role]};" for role in missing if role not in there]
    return Unavailable(
        f"{login} cannot make or use the roles {' and '.join(missing)}: {error}. Nothing was"
        f" changed. Let an administrator run: {' '.join(steps)}{' ' if steps else ''}"
        f"GRANT {', '.join(missing)} TO {login};"
        " Where nobody may give BYPASSRLS, start as the owner of the tables with"
        " FAIRWAY_ROW_SECURITY=false, without a second wall between tenants.",
        code="NO_ROLES",
    )


async def lacks(connection: Connection) -> bool:
    """Whether a role, or what one may do, is missing."""
    return bool(
        await _missing(connection) or await connection.fetchval(_LACKING, TABLES, list(TENANTS_MAY))
    )


async def grant(connection: Connection) -> None:
    """What each role may do, once the schema is there; given again, it changes nothing."""
    async with connection.transaction():
        schema = await connection.fetchval("SELECT quote_ident(current_schema())")
        await connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {SERVER}, {TENANT}")
        await connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {SERVER}")
        await connection.execute(f"GRANT {ALL} ON {', '.join(TABLES)} TO {SERVER}")
        for table, may in TENANTS_MAY.items():
            await connection.execute(f"GRANT {may} ON {table} TO {TENANT}")


# -- proof -------------------------------------------------------------------------------------


async def prove(connection: Connection) -> None:
    """Ask the store whether the wall stands, as each of the roles; a sentence where it does not."""
    for role in (TENANT, SERVER):
        await connection.asks_as.become(connection, Scope(role))
        if absent := await _absent(connection):
            raise _no_wall(
                f"as {role} there are no tables {', '.join(absent)}; set the search_path of the"
                " login to the schema that they are in"
            )
        if found := await _too_mighty(connection):
            raise _no_wall(f"the role {role} {found}")
    if await connection.fetchval("SELECT row_security_active('jobs')"):
        raise _no_wall(f"{SERVER} does not pass policies by; ALTER ROLE {SERVER} BYPASSRLS")
    await connection.asks_as.become(connection, Scope(TENANT))
    rows = await connection.fetch(
        f"SELECT name FROM ({_PRESENT}) AS t WHERE has_tenants"
        " AND has_table_privilege(oid, 'SELECT') AND NOT row_security_active(oid)"
    )
    if rows:
        raise _no_wall(f"policies do not hold on {', '.join(row['name'] for row in rows)}")


async def prove_server(connection: Connection) -> None:
    """Whether a connection was born as the server's: something in between may drop settings."""
    user = await connection.fetchval("SELECT current_user")
    if user != SERVER:
        raise _no_wall(
            f"connections ask as {user}, not as {SERVER}; connect without a pooler between, which"
            " drops what a connection begins with"
        )


async def prove_owner(connection: Connection) -> None:
    """Without roles, who asks must be beyond the policies, or would see nothing."""
    if await connection.fetchval("SELECT row_security_active('jobs')"):
        raise Unavailable(
            "FAIRWAY_ROW_SECURITY=false, but the login of FAIRWAY_DATABASE_URL does not own the"
            " tables, so that it would see no rows. Use the owner's.",
            code="NO_ROW_SECURITY",
        )


def cannot_ask(error: BaseException) -> Unavailable:
    """The login may not become one of the roles."""
    return _no_wall(f"{error}; GRANT {SERVER}, {TENANT} to the login of FAIRWAY_DATABASE_URL")


async def _absent(connection: Connection) -> list[str]:
    rows = await connection.fetch(
        "SELECT t FROM unnest($1::text[]) AS t WHERE to_regclass(t) IS NULL", TABLES
    )
    return [row["t"] for row in rows]


async def _too_mighty(connection: Connection) -> str | None:
    row = await connection.fetchrow(
        """
        SELECT rolsuper, rolcreaterole, rolname <> $1 AND rolbypassrls AS bypasses,
               has_schema_privilege(current_schema(), 'CREATE') AS creates,
               EXISTS (SELECT FROM pg_class WHERE relowner = pg_roles.oid) AS owns,
               quote_ident(current_schema()) AS schema, rolname AS role
        FROM pg_roles WHERE rolname = current_user
        """,
        SERVER,
    )
    role, schema = row["role"], row["schema"]
    faults = {
        "rolsuper": f"is a superuser; ALTER ROLE {role} NOSUPERUSER",
        "rolcreaterole": f"may make roles; ALTER ROLE {role} NOCREATEROLE",
        "bypasses": f"passes policies by; ALTER ROLE {role} NOBYPASSRLS",
        "creates": f"may make tables; REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, {role}",
        "owns": "owns tables; give them to another role",
    }
    return next((text for name, text in faults.items() if row[name]), None)


def _no_wall(why: str) -> Unavailable:
    return Unavailable(
        f'There is no second wall between tenants in the database: {why}. See "The database as a'
        ' second wall" in docs/OPERATING.md.',
        code="NO_ROW_SECURITY",
    )
