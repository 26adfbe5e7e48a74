"""Brings a database to the present schema: numbered SQL files, in order, under a lock.

Each file runs in one transaction with its own record, so a crash in the middle leaves either all
of it or none. A database from the future is refused rather than guessed at.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import NamedTuple

from fairway.core.errors import Unavailable
from fairway.store.database import Connection

LOCK_KEY = 0x66616972  # "fair": one migrator at a time; a plain session lock, released on any end

_HISTORY = """
CREATE TABLE IF NOT EXISTS migrations (
    number      int         PRIMARY KEY,
    name        text        NOT NULL,
    checksum    text        NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
)
"""


class Migration(NamedTuple):
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def all_migrations() -> list[Migration]:
    folder = resources.files("fairway.store").joinpath("migrations")
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [
        Migration(
            int(name[:4]), name.removesuffix(".sql"), folder.joinpath(name).read_text("utf-8")
        )
        for name in files
    ]


async def pending(connection: Connection) -> list[Migration]:
    """What is not applied yet; refuses a schema that is newer than this program."""
    await connection.execute(_HISTORY)
    rows = await connection.fetch("SELECT number, name FROM migrations")
    applied = {row["number"]: row["name"] for row in rows}
    known = all_migrations()
    unknown = set(applied) - {migration.number for migration in known}
    if unknown:
        raise Unavailable(
            f"The database has migration {applied[max(unknown)]!r}, which this version of Fairway"
            " does not know. Start the version that made it, or a newer one.",
            code="SCHEMA_TOO_NEW",
        )
    return [migration for migration in known if migration.number not in applied]


async def migrate(connection: Connection) -> list[Migration]:
    """Apply what is pending; answers what was applied."""
    await connection.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)
    try:
        to_apply = await pending(connection)
        for migration in to_apply:
            await _apply(connection, migration)
        return to_apply
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", LOCK_KEY)


async def _apply(connection: Connection, migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute("SET LOCAL lock_timeout = '5s'")
        await connection.execute(migration.text)
        await connection.execute(
            "INSERT INTO migrations (number, name, checksum) VALUES ($1, $2, $3)",
            migration.number,
            migration.name,
            migration.checksum,
        )
