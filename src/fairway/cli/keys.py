"""`fairway operator-key`: the first key of an installation on a PostgreSQL of one's own.

Whoever may write to the database may make one; every other key is then made with it, over HTTP.
"""

from __future__ import annotations

import asyncio
import os
import sys

import asyncpg

from fairway.core.errors import InvalidRequest, Unavailable
from fairway.runtime.random_ids import new_api_key
from fairway.runtime.settings import load
from fairway.store import tenants
from fairway.store.connections.hosts import connect_for_once
from fairway.store.tenants import StoredKey


def operator_key(*, database_url: str | None = None) -> None:
    """Make a key for operators on your own PostgreSQL (FAIRWAY_DATABASE_URL) and print it, once."""
    settings = load(os.environ, database_url=database_url)
    if settings.database_url is None:
        raise InvalidRequest(
            "Set FAIRWAY_DATABASE_URL. `fairway up` with its own PostgreSQL leaves the operator's"
            " key in client.json of its data folder."
        )
    text = asyncio.run(_make(settings.owner_database_url or settings.database_url))
    sys.stdout.write(f"{text}\n")


async def _make(dsn: str) -> str:
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
