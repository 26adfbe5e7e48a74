"""Brings a database to the present schema: numbered SQL files, in order, under a lock.

Each file runs in one transaction with its own record, so a crash in the middle leaves either all
of it or none. A new index on `jobs` is a file of its own that begins with `-- index:`; it is built
partition by partition beside the work (`online_index.py`). Other servers wait, and say so. A
database from the future is refused rather than guessed at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import resources
from typing import NamedTuple, TypeAlias

import asyncpg

from fairway.core.errors import Unavailable
from fairway.store.connections.database import Connection
from fairway.store.connections.hosts import connect_for_once
from fairway.store.connections.row_security import grant, lacks, make_roles
from fairway.store.schema.online_index import NewIndex, add_index, parse_index

LOCK_KEY = 0x66616972  # "fair": one migrator at a time; a plain session lock, released on any end

LOCK_TIMEOUT = "200ms"
LOCK_TRIES = 120
REST_SECONDS = 0.5  # between two tries

Say: TypeAlias = Callable[[str], None]


def silent(reason: str) -> None:
    """Tell nobody."""


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


def index_of(migration: Migration) -> NewIndex | None:
    """The index that a file asks for, if that is all it does."""
    return parse_index(migration.text)


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
    return await _pending(connection)


async def is_present(connection: Connection) -> bool:
    """Whether nothing is left to apply; only looks."""
    is_founded = await connection.fetchval("SELECT to_regclass('migrations') IS NOT NULL")
    return bool(is_founded) and not await _pending(connection)


async def _pending(connection: Connection) -> list[Migration]:
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


async def migrate_at(dsn: str, say: Say = silent, *, roles: bool = True) -> list[Migration]:
    """Bring the database at this address to the present schema; answers what was applied.

    On a connection of its own, without the time limits of everyday statements: a migration of a
    large table takes as long as it takes. It only never waits long for a lock.
    """
    connection = await connect_for_once(dsn, "fairway-migrate")
    try:
        await connection.execute("SET statement_timeout = 0")
        return await migrate(connection, say, roles=roles)
    finally:
        await connection.close()


async def migrate(
    connection: Connection, say: Say = silent, *, roles: bool = True
) -> list[Migration]:
    """Apply what is pending; answers what was applied. `say` hears why it takes long."""
    if await is_present(connection) and not (roles and await lacks(connection)):
        return []
    await _become_the_migrator(connection, say)
    try:
        to_apply = await pending(connection)
        if roles:  # before anything is changed: who may make none can go back to where they were
            await make_roles(connection)
        for migration in to_apply:
            await _apply_patiently(connection, migration, say)
        if roles:
            await grant(connection)
        return to_apply
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", LOCK_KEY)


async def _become_the_migrator(connection: Connection, say: Say) -> None:
    """Ask, do not queue: a wait for a lock runs into time-outs, and nobody hears of it."""
    while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", LOCK_KEY):
        say("another server migrates the database; this one starts when that is done")
        await _rest(connection)


async def _rest(connection: Connection) -> None:
    await connection.execute("SELECT pg_sleep($1)", REST_SECONDS)


async def _apply_patiently(connection: Connection, migration: Migration, say: Say) -> None:
    """A lock is asked for briefly and often: who waits for one holds up everybody behind it."""
    for _ in range(LOCK_TRIES):
        try:
            await _apply(connection, migration)
            return
        except asyncpg.LockNotAvailableError:
            say(f"migration {migration.name} waits for a lock that others hold")
            await _rest(connection)
    raise Unavailable(
        f"Migration {migration.name!r} found its tables in use {LOCK_TRIES} times. End long"
        " statements and transactions on them, then start again.",
        code="SCHEMA_IN_USE",
    )


async def _apply(connection: Connection, migration: Migration) -> None:
    if (index := index_of(migration)) is not None:
        await add_index(connection, index)
        await _note(connection, migration)
        return
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        await connection.execute(migration.text)
        await _note(connection, migration)


async def _note(connection: Connection, migration: Migration) -> None:
    await connection.execute(
        "INSERT INTO migrations (number, name, checksum) VALUES ($1, $2, $3)",
        migration.number,
        migration.name,
        migration.checksum,
    )
