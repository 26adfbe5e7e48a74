"""`fairway sql-login`: which login of the database may hand in jobs, and whose they are.

Whoever owns Fairway's tables decides it, in the database itself: that is what vouches for a login.
"""

from __future__ import annotations

import os
import sys

from fairway.cli.data_folder import postgres_folder
from fairway.core.errors import InvalidRequest, NotFound, Unavailable
from fairway.runtime.settings import Settings, load

CREATES = (
    "Warning: {login} may create functions in the schema of Fairway's tables, and with these act as"
    " their owner, for all tenants. Unless that is meant: REVOKE CREATE ON SCHEMA …, or keep"
    " Fairway's tables in a schema of their own.\n"
)


def sql_login(
    tenant: str, login: str, *, remove: bool = False, database_url: str | None = None
) -> None:
    """Let a login of your PostgreSQL hand in a tenant's jobs with its transactions.

    Parameters
    ----------
    tenant
        Whose jobs they are.
    login
        A role that is there already, and that the tenant's program connects as. It stands for one
        tenant only.
    remove
        It may not any more, from its next call on.
    database_url
        postgresql://… as the owner of Fairway's tables; without it, as the servers' settings say.
    """
    import asyncio

    settings = load(os.environ, database_url=database_url)
    asyncio.run(_decide(database_url or _address(settings), tenant, login, remove=remove))
    told = "no longer hands in" if remove else "hands in"
    sys.stdout.write(f"{login} {told} jobs of {tenant} with its transactions.\n")


def _address(settings: Settings) -> str:
    if settings.database_url is not None:
        return settings.owner_database_url or settings.database_url
    from fairway.store.postgres.embedded import EmbeddedPostgres

    folder = postgres_folder(settings.data_dir)
    running = EmbeddedPostgres(folder, settings.postgres_bin).address_in_use()
    if running is None:
        raise InvalidRequest("Set FAIRWAY_DATABASE_URL, or start `fairway up` first.")
    return running


async def _decide(dsn: str, tenant: str, login: str, *, remove: bool) -> None:
    import asyncpg

    from fairway.store.connections.hosts import connect_for_once
    from fairway.store.registry.sql_logins import allow_login, forbid_login, may_create

    connection = await connect_for_once(dsn, "fairway-logins")
    try:
        is_done = await (forbid_login if remove else allow_login)(connection, login, tenant)
        if is_done and not remove and await may_create(connection, login):
            sys.stderr.write(CREATES.format(login=login))
    except asyncpg.UndefinedObjectError:
        raise NotFound(
            f"There is no login {login!r} in this PostgreSQL; make it first: CREATE ROLE … LOGIN."
        ) from None
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedFunctionError):
        raise Unavailable(
            "There is no Fairway of this version in this database yet: start `fairway server` on it"
            " first."
        ) from None
    except asyncpg.InsufficientPrivilegeError as error:
        raise Unavailable(
            f"This needs the owner of Fairway's tables (FAIRWAY_OWNER_DATABASE_URL): {error}."
        ) from None
    finally:
        await connection.close()
    if not is_done:
        what = f"{login} hands in no jobs of {tenant}" if remove else f"There is no tenant {tenant}"
        raise NotFound(f"{what}; nothing was changed.")
