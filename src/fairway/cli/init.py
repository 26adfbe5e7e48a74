"""`fairway init`: one's own PostgreSQL becomes a platform: schema and the first operator's key.

Safe to repeat: the schema is brought to the present one, and a key is made only where no operator
has one. It starts nothing, and changes nothing but the database it is pointed at.
"""

from __future__ import annotations

import asyncio
import os
import sys

from rich.console import Console

from fairway.core.errors import InvalidRequest

screen = Console(stderr=True, highlight=False, soft_wrap=True)

NEXT = """
  Next, with this key in FAIRWAY_OPERATOR_KEY:
    fairway server                    one server on this database, or as many as you like
    fairway tenants add acme          a customer and its first key
    fairway keys add --worker         a key for workers\
"""


def init(*, database_url: str | None = None) -> None:
    """Make your own PostgreSQL ready, and the first operator's key, which is printed once.

    The key is all that goes to standard output: `export FAIRWAY_OPERATOR_KEY=$(fairway init)`.

    Parameters
    ----------
    database_url
        postgresql://… of a database that Fairway may use for itself (default FAIRWAY_DATABASE_URL).
    """
    from fairway.cli.serve import checked
    from fairway.runtime.settings import load

    settings = checked(load(os.environ, database_url=database_url))
    if settings.database_url is None:
        raise InvalidRequest(
            "Set FAIRWAY_DATABASE_URL, or use `fairway up`, which brings its own PostgreSQL and"
            " makes its keys itself."
        )
    key = asyncio.run(
        _prepared(settings.owner_database_url or settings.database_url, settings.row_security)
    )
    if key is None:
        screen.print("  An operator's key was made before; `fairway operator-key` makes another.")
        return
    sys.stdout.write(f"{key}\n")
    sys.stdout.flush()
    screen.print("  The operator's key is shown this once: keep it.")
    screen.print(NEXT)


async def _prepared(dsn: str, row_security: bool) -> str | None:
    """The first operator's key, or None where there is one already."""
    from fairway.runtime.random_ids import new_api_key
    from fairway.store.connections.hosts import connect_for_once
    from fairway.store.registry import tenants
    from fairway.store.registry.tenants import NewKeyFacts, StoredKey
    from fairway.store.schema.migrate import migrate_at

    applied = await migrate_at(dsn, lambda reason: screen.print(f"  {reason}"), roles=row_security)
    screen.print(f"  Schema: {f'{len(applied)} migrations applied' if applied else 'up to date'}.")
    connection = await connect_for_once(dsn, "fairway-init")
    try:
        async with connection.transaction():
            await tenants.lock_operators(connection)
            if await tenants.list_keys(connection, "", 1, "operator", None):
                return None
            key = new_api_key("operator")
            stored = StoredKey(key.id, key.scope, None, key.secret_hash)
            await tenants.add_key(connection, stored, NewKeyFacts("fairway init"))
    finally:
        await connection.close()
    return key.text
