"""Does the second wall between tenants stand? The store itself is asked, as each of the roles.

A server proves it before it starts, and `fairway check` whenever somebody asks. All that is wrong
is told at once, each with what to run.
"""

from __future__ import annotations

import re

import asyncpg

from fairway.core.errors import Unavailable
from fairway.store.connections.row_security import (
    SERVER,
    TABLES,
    TENANT,
    TENANTS_MAY,
    Connection,
    Scope,
)

_PRESENT = """
SELECT c.oid, c.relname AS name, EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname = 'tenant' AND NOT attisdropped
) OR c.relname = 'tenants' AS has_tenants
FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
"""

_MIGHT = """
SELECT rolsuper, rolcreaterole, rolname <> $1 AND rolbypassrls AS bypasses,
       has_schema_privilege(current_schema(), 'CREATE') AS creates,
       EXISTS (SELECT FROM pg_class WHERE relowner = pg_roles.oid) AS owns,
       quote_ident(current_schema()) AS schema, rolname AS role
FROM pg_roles WHERE rolname = current_user
"""

#: Tables with rows of tenants that a tenant's role may read, and no policy keeps it from any.
_OPEN = f"""
SELECT name, name = ANY($1::text[]) AS is_ours FROM ({_PRESENT}) AS t
WHERE has_tenants AND has_table_privilege(oid, 'SELECT') AND NOT row_security_active(oid)
"""

#: What a tenant's role may do to our tables and their partitions beyond what is in `TENANTS_MAY`.
_BEYOND = """
SELECT c.relname AS name, array_agg(privilege ORDER BY privilege) AS privileges
FROM pg_class c,
     unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) AS privilege
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
  AND (c.relname = ANY($1::text[]) OR c.relispartition)
  AND CASE WHEN has_table_privilege(c.oid, privilege) THEN true
           WHEN privilege IN ('DELETE', 'TRUNCATE') THEN false
           ELSE has_any_column_privilege(c.oid, privilege) END
  AND NOT c.relname || ' ' || privilege = ANY($2::text[])
GROUP BY c.relname ORDER BY c.relname
"""

#: Views of our tables see what their owner sees, whoever looks through them.
_VIEWS = """
SELECT DISTINCT v.relname AS name
FROM pg_rewrite AS r
JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
JOIN pg_class AS t ON t.oid = d.refobjid AND d.refclassid = 'pg_class'::regclass
JOIN pg_class AS v ON v.oid = r.ev_class AND v.oid <> t.oid
WHERE t.relnamespace = current_schema()::regnamespace AND t.relname = ANY($1::text[])
  AND NOT coalesce(v.reloptions, '{}') && ARRAY['security_invoker=true', 'security_invoker=on']
  AND has_any_column_privilege(v.oid, 'SELECT')
"""

#: Policies besides the one of each table: one more that permits is one that opens.
_POLICIES = """
SELECT tablename AS name, policyname AS policy,
       qual IS NOT DISTINCT FROM $1 AND coalesce(with_check, $1) = $1 AS is_of_tenant,
       tablename = 'tenants' AND qual = $2 AND coalesce(with_check, $2) = $2 AS is_of_itself
FROM pg_policies
WHERE schemaname = current_schema() AND permissive = 'PERMISSIVE' AND tablename <> 'shards'
  AND EXISTS (SELECT FROM unnest(roles) AS role
              WHERE role = 'public' OR pg_has_role(role::text, 'USAGE'))
"""

_WORD = re.compile(r"[A-Z]+")
_DOES = {
    "SELECT": "read",
    "INSERT": "add to",
    "UPDATE": "change",
    "DELETE": "remove from",
    "TRUNCATE": "empty",
}

OF_TENANT, OF_ITSELF = "(tenant = current_tenant())", "(id = current_tenant())"


async def prove(connection: Connection) -> None:
    """Raises with all that is wrong."""
    if faults := await find_faults(connection):
        raise no_wall("; ".join(faults))


async def find_faults(connection: Connection) -> list[str]:
    faults: list[str] = []
    for role in (SERVER, TENANT):
        await connection.asks_as.become(connection, Scope(role))
        if absent := await _absent(connection):
            return [
                f"as {role} there are no tables {', '.join(absent)}; set the search_path of the"
                " login to the schema that they are in"
            ]
        faults += [f"the role {role} {fault}" for fault in await _too_mighty(connection)]
        if role == SERVER and await connection.fetchval("SELECT row_security_active('jobs')"):
            faults.append(f"{SERVER} does not pass policies by; ALTER ROLE {SERVER} BYPASSRLS")
    faults += await _open_tables(connection) + await _beyond(connection)
    return faults + await _wrong_policies(connection)


async def prove_server(connection: Connection) -> None:
    """Whether a connection was born as the server's: something in between may drop settings."""
    user = await connection.fetchval("SELECT current_user")
    if user != SERVER:
        raise no_wall(
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
    return no_wall(f"{error}; GRANT {SERVER}, {TENANT} to the login of FAIRWAY_DATABASE_URL")


def no_wall(why: str) -> Unavailable:
    return Unavailable(
        f'There is no second wall between tenants in the database: {why}. See "The database as a'
        ' second wall" in docs/OPERATING.md.',
        code="NO_ROW_SECURITY",
    )


#: What the store says to a login that may not become a role, or where there is none.
CANNOT_ASK = (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError)


async def _absent(connection: Connection) -> list[str]:
    rows = await connection.fetch(
        "SELECT t FROM unnest($1::text[]) AS t WHERE to_regclass(t) IS NULL", TABLES
    )
    return [row["t"] for row in rows]


async def _too_mighty(connection: Connection) -> list[str]:
    row = await connection.fetchrow(_MIGHT, SERVER)
    role, schema = row["role"], row["schema"]
    faults = {
        "rolsuper": f"is a superuser; ALTER ROLE {role} NOSUPERUSER",
        "rolcreaterole": f"may make roles; ALTER ROLE {role} NOCREATEROLE",
        "bypasses": f"passes policies by; ALTER ROLE {role} NOBYPASSRLS",
        "creates": f"may make tables; REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, {role}",
        "owns": "owns tables; give them to another role",
    }
    return [text for name, text in faults.items() if row[name]]


async def _open_tables(connection: Connection) -> list[str]:
    """As a tenant's role."""
    rows = await connection.fetch(_OPEN, TABLES)
    close = f"REVOKE ALL ON {{}} FROM PUBLIC, {TENANT}"
    return [
        f"policies do not hold on {row['name']}; "
        + ("ALTER TABLE {} ENABLE ROW LEVEL SECURITY" if row["is_ours"] else close).format(
            row["name"]
        )
        for row in rows
    ]


async def _beyond(connection: Connection) -> list[str]:
    """As a tenant's role: what it may do that no request of a tenant needs."""
    may = [f"{table} {one}" for table, some in TENANTS_MAY.items() for one in _WORD.findall(some)]
    tables = await connection.fetch(_BEYOND, TABLES, may)
    views = await connection.fetch(_VIEWS, TABLES)
    return [
        f"the role {TENANT} may {', '.join(_DOES[one] for one in row['privileges'])} {row['name']};"
        f" REVOKE {', '.join(row['privileges'])} ON {row['name']} FROM PUBLIC, {TENANT}"
        for row in tables
    ] + [
        f"the role {TENANT} may look through the view {row['name']};"
        f" REVOKE ALL ON {row['name']} FROM PUBLIC, {TENANT}"
        for row in views
    ]


async def _wrong_policies(connection: Connection) -> list[str]:
    """One that shows more than a tenant's own rows, or none where there must be one."""
    rows = await connection.fetch(_POLICIES, OF_TENANT, OF_ITSELF)
    right = {row["name"] for row in rows if row["is_of_tenant"] or row["is_of_itself"]}
    present = await connection.fetch(f"SELECT name FROM ({_PRESENT}) AS t WHERE has_tenants")
    needed = {row["name"] for row in present} & set(TENANTS_MAY)
    return [
        f"the policy {row['policy']} shows other rows of {row['name']} than a tenant's own;"
        f" DROP POLICY {row['policy']} ON {row['name']}"
        for row in rows
        if not row["is_of_tenant"] and not row["is_of_itself"]
    ] + [
        f"{name} has no policy that shows a tenant its own rows; CREATE POLICY of_tenant ON {name}"
        f" USING {OF_ITSELF if name == 'tenants' else OF_TENANT}"
        for name in sorted(needed - right)
    ]
