"""`fairway keys …`, and `fairway operator-key`: the first one on a PostgreSQL of one's own.

Whoever may write to the database may make the first; every other one is then made with it, over
HTTP.
"""

from __future__ import annotations

import os
import sys

from cyclopts import App

from fairway.cli.remote import PLAIN, Options
from fairway.cli.terminal.moments import age
from fairway.cli.terminal.output import Column, Yes, agreed
from fairway.core.errors import InvalidRequest, Unavailable

app = App(name="keys", help="List, make and revoke keys of tenants and workers (operator).")

LIST_MAX = 100_000
KEYS = (
    Column("id", "id"),
    Column("scope", "scope"),
    Column("tenant", lambda one: one["tenant"] or "–"),
    Column("age", lambda one: age(one["created_at"])),
    Column("ends", lambda one: age(one["expires_at"]), "spare"),
)


@app.command(name=("ls", "list"))
def list_(
    *,
    tenant: str | None = None,
    scope: str | None = None,
    limit: int = 1000,
    options: Options = PLAIN,
) -> None:
    """The keys that open something now; never their secrets.

    Parameters
    ----------
    tenant
        Only keys of this tenant.
    scope
        Only keys of this scope: tenant, worker or operator.
    limit
        So many at most.
    """
    if not 1 <= limit <= LIST_MAX:
        raise InvalidRequest(f"--limit is a number from 1 to {LIST_MAX}.")
    found = options.operator().pages("/v1/keys", "keys", limit, tenant=tenant, scope=scope)
    options.rows({"keys": found}, found, KEYS, "No keys.")


@app.command(name=("add", "make"))
def add(*, tenant: str | None = None, worker: bool = False, options: Options = PLAIN) -> None:
    """Make a key and print it, once: of a tenant's programs, or with --worker of workers.

    Parameters
    ----------
    tenant
        Whose it is. A worker's key without one serves all tenants.
    worker
        For workers, not for programs that hand jobs in.
    """
    if not (tenant or worker):
        raise InvalidRequest(
            "Say for whom: --tenant acme, or --worker. `fairway operator-key`"
            " makes one for operators, on the database itself."
        )
    wanted = {"scope": "worker" if worker else "tenant", "tenant": tenant}
    made = options.operator().call("POST", "/v1/keys", wanted)
    options.record(made, made["api_key"])


@app.command(name=("revoke", "rm"))
def revoke(id: str, *, yes: Yes = False, options: Options = PLAIN) -> None:
    """Revoke a key: within 5 s it opens nothing on any server. Says whose it is, and asks.

    Parameters
    ----------
    id
        Its public part, as `fairway keys ls` shows it; the whole key will do, too.
    """
    key = id.split("_")[2] if id.count("_") == 4 else id  # a secret need not travel
    remote = options.operator()
    page = remote.get("/v1/keys", cursor=_before(key), limit=1)["keys"]
    if page and page[0]["id"] == key:
        whose = f"the {page[0]['scope']} key {key} of {page[0]['tenant'] or 'no tenant'}"
        agreed(f"This revokes {whose}, made {age(page[0]['created_at'])} ago.", yes=yes)
    remote.call("DELETE", f"/v1/keys/{key}")
    options.record({"id": key, "revoked": True}, f"Revoked: {key}")


def _before(key: str) -> str:
    """The place just before this key in the list of keys, whose public parts are hexadecimal."""
    try:
        number = int(key, 16)
    except ValueError:
        raise InvalidRequest(f"{key[:64]!r} is no key's id; see `fairway keys ls`.") from None
    return f"{number - 1:0{len(key)}x}" if number else ""


def operator_key(*, database_url: str | None = None) -> None:
    """Make a key for operators on your own PostgreSQL (FAIRWAY_DATABASE_URL) and print it, once.

    Parameters
    ----------
    database_url
        postgresql://… of your database (default FAIRWAY_DATABASE_URL).
    """
    import asyncio

    from fairway.runtime.settings import load

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

    from fairway.runtime.random_ids import new_api_key
    from fairway.store.connections.hosts import connect_for_once
    from fairway.store.registry import tenants
    from fairway.store.registry.tenants import StoredKey

    key = new_api_key("operator")
    connection = await connect_for_once(dsn, "fairway-keys")
    try:
        await tenants.add_key(connection, StoredKey(key.id, key.scope, None, key.secret_hash))
    except asyncpg.UndefinedTableError:
        raise Unavailable(
            "There is no Fairway in this database yet: start `fairway server` on it first."
        ) from None
    finally:
        await connection.close()
    return key.text
