"""The second wall between tenants: as whom a connection asks, and which rows that one sees.

Every table with rows of tenants has a policy (migration 0013): only those of the tenant that the
connection is set to are there. Two roles; neither can log in, owns anything or changes a table:

    fairway_tenant    answers one tenant's request. Policies hold, and without a tenant set there
                      are no rows at all.
    fairway_server    does the server's own work, in batches that serve many tenants at once. It
                      passes policies by: COPY knows none, and a batch has no one tenant.

What changes tables (migrations, partitions, statistics) is done by their owner, on connections of
its own. Whether all of this holds is proven before a server starts (`row_security_proof.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import asyncpg

from fairway.core.errors import Unavailable
from fairway.core.ids import TenantId
from fairway.store.connections.connection_cache import NoConnection, Use
from fairway.store.connections.move_fence import MoveFence

Connection: TypeAlias = Any

SERVER, TENANT = "fairway_server", "fairway_tenant"

ALL = "SELECT, INSERT, UPDATE, DELETE"

#: What a tenant's request may do, to its own rows where they are anybody's.
TENANTS_MAY = {
    "audit": "SELECT, INSERT",
    "bulk_actions": "SELECT, INSERT, UPDATE",
    "checkpoints": "SELECT",
    "circuits": "SELECT, UPDATE, DELETE",
    "event_heads": "SELECT",
    "event_inbox": "INSERT",  # by the triggers on jobs, when a tenant's request changes one
    "event_log": "SELECT",
    "flow_turns": "SELECT, INSERT, UPDATE",
    "flows": "SELECT, UPDATE",
    "held_jobs": "SELECT",
    "idempotency": "SELECT",
    "insight_hours": "SELECT",
    "insight_minutes": "SELECT",
    "job_logs": "SELECT",
    "job_types": "SELECT",
    "jobs": "SELECT, UPDATE",
    "pauses": ALL,
    "pools": "SELECT",
    "prices": "SELECT",
    "quarantines": "SELECT, UPDATE, DELETE",
    "schedule_runs": ALL,
    "schedules": ALL,
    "shards": "SELECT, UPDATE (shard)",  # to lock a row; a policy lets none be changed
    "spend_caps": "SELECT",
    "statements": "SELECT",
    "tenant_types": "SELECT",
    "tenants": "SELECT",
    "tiers": "SELECT",
    "usage_hours": "SELECT",
    "webhook_deliveries": ALL,
    "webhooks": ALL,
}

#: What the server reads and writes. Days of jobs are reached through `jobs` alone; what was carried
#: on from one is swept by name.
TABLES = tuple(
    sorted(
        (
            *TENANTS_MAY,
            "alarm_history",
            "api_keys",
            "autoscale_decisions",
            "autoscale_pools",
            "billing_shards",
            "cluster",
            "fair_share",
            "insight_servers",
            "jobs_carried",
            "marks",
            "migrations",
            "outbox",
            "rate_windows",
            "region_state",
            "servers",
            "sessions",
            "sign_ins",
            "sql_logins",
            "tenant_homes",
            "tenant_move_hearers",
            "tenant_moves",
            "unique_jobs",
            "usage_log",
            "worker_sessions",
        )
    )
)

#: Of the database, which act as the owner of the tables: the server may call them, tenants may not.
FUNCTIONS = ("fairway_pass_over_tenants",)

#: Each role with what it should be able to do, one thing a row.
_LACKING = """
SELECT role, a_table, privilege, a_column
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS w(role, a_table, privilege, a_column)
WHERE NOT CASE WHEN a_column IS NULL THEN has_table_privilege(role, a_table, privilege)
          ELSE has_column_privilege(role, a_table, a_column, privilege) END
"""

_LACKING_AROUND = f"""
SELECT format('USAGE ON SCHEMA %I TO %s', current_schema(), role) AS what
FROM unnest(ARRAY['{SERVER}', '{TENANT}']) AS role
WHERE NOT has_schema_privilege(role, current_schema(), 'USAGE')
UNION ALL
SELECT format('USAGE ON SEQUENCE %I TO {SERVER}', relname) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace
  AND CASE WHEN relkind = 'S' THEN NOT has_sequence_privilege('{SERVER}', oid, 'USAGE') END
UNION ALL
SELECT format('EXECUTE ON FUNCTION %s TO {SERVER}', oid::regprocedure) FROM pg_proc
WHERE pronamespace = current_schema()::regnamespace AND proname = ANY($1::text[])
  AND NOT has_function_privilege('{SERVER}', oid, 'EXECUTE')
"""

#: Of those roles that there are: one that may be set is of use, whoever made it.
_USABLE = "SELECT rolname FROM pg_roles WHERE rolname = ANY($1::text[]) AND pg_has_role(oid, 'SET')"


class Scope(NamedTuple):
    """As whom a connection asks."""

    role: str
    tenant: TenantId | None = None


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
    """`async with`: a connection that asks as somebody; None: as whoever it logged in as.

    Whoever waited for one with which moves of tenants were learnt has asked for the wrong shard,
    perhaps, and would not find what is there: it is refused.
    """

    __slots__ = ("_fence", "_known", "_scope", "_use")

    def __init__(self, use: Use, scope: Scope | None, fence: MoveFence) -> None:
        self._use = use
        self._scope = scope
        self._fence = fence
        self._known = fence.known

    def begun(self, seconds: float) -> None:
        """Whoever asks has waited so long for a turn."""
        self._use.begun(seconds)

    async def __aenter__(self) -> Connection:
        connection = await self._use.__aenter__()
        try:
            if self._fence.has_learnt_since(self._known):
                raise NoConnection("tenants were moved meanwhile")
            if self._scope is not None:
                await connection.asks_as.become(connection, self._scope)
        except BaseException as error:
            await self._use.__aexit__(type(error), error, error.__traceback__)
            raise
        return connection

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        await self._use.__aexit__(kind, error, traceback)


# -- roles -------------------------------------------------------------------------------------


async def make_roles(connection: Connection) -> None:
    """As the owner of the tables, before anything is changed: who may not hears what to do."""
    missing = await _missing(connection)
    try:
        for role in missing:
            await connection.execute(_make(role))
    except asyncpg.InsufficientPrivilegeError as error:
        raise await _no_roles(connection, missing, error) from error


async def _missing(connection: Connection) -> list[str]:
    rows = await connection.fetch(_USABLE, [SERVER, TENANT])
    usable = {row["rolname"] for row in rows}
    return [role for role in (SERVER, TENANT) if role not in usable]


def _make(role: str) -> str:
    kind = "BYPASSRLS" if role == SERVER else "NOBYPASSRLS"
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
    return bool(await _missing(connection) or await missing_grants(connection))


async def missing_roles(connection: Connection) -> list[str]:
    """What `make_roles` would make or make usable, found out by a trial that is taken back."""
    missing, refusal = await _missing(connection), None
    trial = connection.transaction()
    await trial.start()
    try:
        for role in missing:
            await connection.execute(_make(role))
    except asyncpg.InsufficientPrivilegeError as error:
        refusal = error
    finally:
        await trial.rollback()
    if refusal is not None:
        raise await _no_roles(connection, missing, refusal)
    return missing


async def missing_grants(connection: Connection) -> list[str]:
    """What the roles, which are there, should be able to do and cannot: `GRANT` each of them."""
    rows = await connection.fetch(_LACKING, *zip(*_wanted(), strict=True))
    around = await connection.fetch(_LACKING_AROUND, FUNCTIONS)
    return [row["what"] for row in around] + [
        f"{row['privilege']}{'' if row['a_column'] is None else ' (' + row['a_column'] + ')'}"
        f" ON {row['a_table']} TO {row['role']}"
        for row in rows
    ]


def _wanted() -> list[tuple[str, str, str, str | None]]:
    """Role, table, privilege, and the column if it is for one alone."""
    wanted: list[tuple[str, str, str, str | None]] = []
    for role, tables in ((SERVER, dict.fromkeys(TABLES, ALL)), (TENANT, TENANTS_MAY)):
        for table, may in tables.items():
            for one in may.split(", "):
                privilege, _, column = one.rstrip(")").partition(" (")
                wanted.append((role, table, privilege, column or None))
    return wanted


async def grant(connection: Connection) -> None:
    """What each role may do, once the schema is there; given again, it changes nothing."""
    async with connection.transaction():
        schema = await connection.fetchval("SELECT quote_ident(current_schema())")
        await connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {SERVER}, {TENANT}")
        await connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {SERVER}")
        await connection.execute(f"GRANT EXECUTE ON FUNCTION {', '.join(FUNCTIONS)} TO {SERVER}")
        await connection.execute(f"GRANT {ALL} ON {', '.join(TABLES)} TO {SERVER}")
        for table, may in TENANTS_MAY.items():
            await connection.execute(f"GRANT {may} ON {table} TO {TENANT}")
