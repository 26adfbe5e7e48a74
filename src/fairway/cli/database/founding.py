"""Commands that speak to the database itself: `fairway init`, `operator-key` and `sql-login`.

Whoever may write to Fairway's tables vouches for what they do; everything else goes over HTTP, with
a key. `init` is safe to repeat, starts nothing, and makes a key only where no operator has one.
"""

from __future__ import annotations

import getpass
import os
import platform
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from fairway.cli.processes.data_folder import postgres_folder
from fairway.cli.processes.shards_asked_for import shards_asked_for
from fairway.core.audit import Act, Actor
from fairway.core.errors import InvalidRequest, NotFound, Unavailable
from fairway.core.ownership.shard_count_wish import unheeded
from fairway.core.regions.region_map import region_map
from fairway.runtime.settings import PREFIX, Settings, checked, load

if TYPE_CHECKING:
    from fairway.store.registry.tenants import Cluster

NEXT = """
Next, with this key in FAIRWAY_OPERATOR_KEY:
  fairway server                    one server on this database, or as many as you like
  fairway tenants add acme          a customer and its first key
  fairway keys add --worker         a key for workers, which they take from FAIRWAY_API_KEY\
"""
NEXT_ELSEWHERE = """
Next, with this key in FAIRWAY_OPERATOR_KEY where {here} itself is looked after:
  fairway server                    one server on this database, or as many as you like
Tenants, tiers and the keys that open every region, workers' too, are made in the directory, which
is {first} unless a failover changed that: with a key and an address (FAIRWAY_URL) of that region.\
"""
NOT_BY_SQL = " A tenant with several shards hands in no jobs by SQL."
CREATES = (
    "Warning: {login} may create functions in the schema of Fairway's tables, and with these act as"
    " their owner, for all tenants. Unless that is meant: REVOKE CREATE ON SCHEMA …, or keep"
    " Fairway's tables in a schema of their own.\n"
)


def init(
    *, database_url: str | None = None, distributed: bool = False, parts: int | None = None
) -> None:
    """Make your own PostgreSQL ready, and the first operator's key, which is printed once.

    The key is all that goes to standard output, and only the first time: `fairway init >
    operator-key` keeps it in a file. If FAIRWAY_SHARD_COUNT is set, the database is founded with so
    many shards, and keeps them; else the first server does that, by its own setting.

    Parameters
    ----------
    database_url
        postgresql://… of a database that Fairway may use for itself (default FAIRWAY_DATABASE_URL).
    distributed
        Lay the tables out over the data nodes of a Citus cluster; the address is its coordinator's.
    parts
        In so many parts, which Citus can move between nodes (default: 2 for each data node).
    """
    import asyncio

    from fairway.services.database_proofs import WITHOUT_ROLES

    settings = load(os.environ, database_url=database_url)
    if settings.database_url is None:
        raise InvalidRequest(
            "Set FAIRWAY_DATABASE_URL, or use `fairway up`, which brings its own PostgreSQL and"
            " makes its keys itself."
        )
    if parts is not None and (not distributed or parts < 1):
        raise InvalidRequest("--parts is a number from 1 on, and needs --distributed.")
    if distributed and settings.row_security:
        raise InvalidRequest(WITHOUT_ROLES)  # a server would not start on it
    checked(settings, f"{PREFIX}SHARD_COUNT")  # what only servers heed is theirs to judge
    wanted = shards_asked_for(settings, os.environ)
    spread = Spread(parts, settings.shard_count) if distributed else None
    key = asyncio.run(
        _prepared(
            settings.owner_database_url or settings.database_url,
            settings.row_security,
            spread,
            wanted,
        )
    )
    if key is None:
        _tell("An operator's key was made before; `fairway operator-key` makes another.")
        return
    sys.stdout.write(f"{key}\n")
    sys.stdout.flush()
    _tell("The operator's key is shown this once: keep it.")
    _tell(_next(settings))


def _next(settings: Settings) -> str:
    """Of several regions one alone makes tenants; what is made by this key here opens no other."""
    try:
        regions = region_map(settings.region, settings.regions)
    except ValueError:  # a server will tell
        regions = None
    if regions is None or not regions.regions or regions.first == regions.here:
        return NEXT
    return NEXT_ELSEWHERE.format(here=regions.here, first=regions.first)


class Spread(NamedTuple):
    """How a database is distributed."""

    parts: int | None
    shard_count: int


async def _prepared(
    dsn: str, row_security: bool, spread: Spread | None, wanted: int | None
) -> str | None:
    """The first operator's key, or None where there is one already."""
    from fairway.store.connections.hosts import connect_for_once
    from fairway.store.registry import tenants
    from fairway.store.schema.migrate import migrate_at

    applied = await migrate_at(dsn, _tell, roles=row_security)
    _tell(f"Schema: {f'{len(applied)} migrations applied' if applied else 'up to date'}.")
    connection = await connect_for_once(dsn, "fairway-init")
    try:
        if spread is not None:
            _tell_of_wish(wanted, await _distributed(connection, spread))
        elif wanted is not None:
            _tell_of_wish(wanted, await _founded(connection, wanted))
        async with connection.transaction():
            await tenants.lock_operators(connection)
            if await tenants.list_keys(connection, "", 1, "operator", None):
                return None
            return await _added(connection, "init", "fairway init")
    finally:
        await connection.close()


async def _founded(connection: Any, shard_count: int) -> Cluster:
    """What all servers of this database agree on, written now unless it is there."""
    import secrets

    from fairway.store.registry import tenants

    return await tenants.found_cluster(connection, shard_count, secrets.token_urlsafe(32))


def _tell_of_wish(wanted: int | None, cluster: Cluster) -> None:
    """How many shards there are, where somebody said a number; and why it is another one."""
    if (told := unheeded(wanted, cluster.shard_count, cluster.shards)) is not None:
        _tell(f"{told.what} {told.remedy}")
    elif wanted is not None:
        _tell(f"Shards: {cluster.shards}.")


async def _distributed(connection: Any, spread: Spread) -> Cluster:
    from fairway.store.connections.placement import placement_of
    from fairway.store.schema.distribution import distribute

    done = await distribute(connection, _tell, spread.parts)
    cluster = await _founded(connection, spread.shard_count)
    placement = await placement_of(connection)
    groups = placement.groups if placement else []
    shards = [sum(one < cluster.shards for one in some) for some in groups]
    _tell(
        f"Distributed: {sum(shards)} shards in {len(shards)} parts (of {min(shards, default=0)} to"
        f" {max(shards, default=0)}) over {done.nodes} data nodes."
    )
    return cluster


async def _added(connection: Any, command: str, name: str) -> str:
    """A new operator's key, and its line in the audit. Inside a transaction."""
    from fairway.runtime.random_ids import new_api_key
    from fairway.store.registry import tenants
    from fairway.store.registry.tenants import StoredKey

    key = new_api_key("operator")
    stored = StoredKey(key.id, key.scope, None, key.secret_hash, name=name)
    await tenants.add_key(connection, stored)
    said = {"scope": key.scope, "name": name, "command": command}
    await _audited(connection, Act("add_key", key.id, after=said))
    return key.text


async def _audited(connection: Any, act: Act) -> None:
    """By whoever may write to the tables, on this machine."""
    from fairway.services.registry.audit_log import USUAL_LOG

    await USUAL_LOG.add(connection, Actor("command", _person(), "command", platform.node()), act)


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as containers have
        return str(os.getuid())


def _tell(text: str) -> None:
    """Beside the key, which alone goes to standard output."""
    sys.stderr.write(f"{text}\n")


def operator_key(*, database_url: str | None = None) -> None:
    """Make a key for operators on your own PostgreSQL (FAIRWAY_DATABASE_URL) and print it, once.

    Parameters
    ----------
    database_url
        postgresql://… of your database (default FAIRWAY_DATABASE_URL).
    """
    import asyncio

    settings = load(os.environ, database_url=database_url)
    if settings.database_url is None:
        raise InvalidRequest(
            "Set FAIRWAY_DATABASE_URL. `fairway up` with its own PostgreSQL leaves the operator's"
            " key in client.json of its data folder."
        )
    text = asyncio.run(_make(settings.owner_database_url or settings.database_url))
    sys.stdout.write(f"{text}\n")


async def _make(dsn: str) -> str:
    import asyncpg

    from fairway.store.connections.hosts import connect_for_once

    connection = await connect_for_once(dsn, "fairway-keys")
    try:
        async with connection.transaction():
            return await _added(connection, "operator-key", "")
    except asyncpg.UndefinedTableError:
        raise Unavailable(
            "There is no Fairway in this database yet: `fairway init` makes it ready."
        ) from None
    finally:
        await connection.close()


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
    act = Act("remove_sql_login" if remove else "add_sql_login", login, after={"tenant": tenant})
    try:
        async with connection.transaction():
            whose = await (forbid_login if remove else allow_login)(connection, login, tenant)
            if whose is not None:
                await _audited(connection, act._replace(tenant=whose))
        if whose is not None and not remove and await may_create(connection, login):
            sys.stderr.write(CREATES.format(login=login))
    except asyncpg.UndefinedObjectError:
        raise NotFound(
            f"There is no login {login!r} in this PostgreSQL; make it first: CREATE ROLE … LOGIN."
        ) from None
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedFunctionError):
        raise Unavailable(
            "There is no Fairway of this version in this database yet: `fairway init`"
            " makes it ready."
        ) from None
    except asyncpg.InsufficientPrivilegeError as error:
        raise Unavailable(
            f"This needs the owner of Fairway's tables (FAIRWAY_OWNER_DATABASE_URL): {error}."
        ) from None
    finally:
        await connection.close()
    if whose is None:
        what = f"{login} hands in no jobs of {tenant}" if remove else f"There is no tenant {tenant}"
        raise NotFound(f"{what}; nothing was changed.{'' if remove else NOT_BY_SQL}")
