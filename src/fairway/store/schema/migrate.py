"""Brings a database to the present schema: numbered SQL files, in order, under a lock.

Each file runs in one transaction with its own record, so a crash in the middle leaves either all
of it or none. A new index on `jobs` is a file of its own that begins with `-- index:`; it is built
partition by partition beside the work (`online_index.py`). Other servers wait, and say so.

A database from the future is refused rather than guessed at, unless those who made it said that
servers of our schema can live with theirs: a file with `-- serves servers from 0034 on` only adds
what they do not miss (expand), and is noted as such beside its name. What takes something away
(contract) comes a version later, without that line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from importlib import resources
from typing import NamedTuple, TypeAlias

import asyncpg

from fairway.core.errors import Unavailable
from fairway.store.connections.database import Connection
from fairway.store.connections.hosts import connect_for_once
from fairway.store.connections.row_security import grant, lacks, make_roles
from fairway.store.connections.server_version import refuse_old_postgres
from fairway.store.schema.online_index import NewIndex, add_index, parse_index

LOCK_KEY = 0x66616972  # "fair": one migrator at a time; a plain session lock, released on any end

LOCK_TIMEOUT = "200ms"
LOCK_TRIES = 120
REST_SECONDS = 0.5  # between two tries

Say: TypeAlias = Callable[[str], None]


_IS_FOUNDED = "SELECT to_regclass('migrations') IS NOT NULL"
_IS_HALF_RESTORED = "SELECT to_regclass('restore_unfinished') IS NOT NULL"
_HAS_COLUMN = """
SELECT EXISTS (SELECT FROM pg_attribute
               WHERE attrelid = 'migrations'::regclass AND attname = 'serves_from')
"""


def silent(reason: str) -> None:
    """Tell nobody."""


_HISTORY = """
CREATE TABLE IF NOT EXISTS migrations (
    number      int         PRIMARY KEY,
    name        text        NOT NULL,
    checksum    text        NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now(),
    serves_from int                   -- servers that know this migration can live with it; or none
);
"""
#: Of a database that was founded before this column.
_HISTORY_GROWS = "ALTER TABLE migrations ADD COLUMN IF NOT EXISTS serves_from int"
_SERVES = re.compile(r"^-- serves servers from (\d{4}) on", re.MULTILINE)


class Migration(NamedTuple):
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def serves_from(self) -> int:
        """The oldest migration that a server must know to be started on this one."""
        said = _SERVES.search(self.text)
        return int(said[1]) if said else self.number


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
    if not await connection.fetchval(_IS_FOUNDED):
        await connection.execute(_HISTORY)
    elif not await connection.fetchval(_HAS_COLUMN):
        await connection.execute(_HISTORY_GROWS)
    return (await not_applied(connection))[1]


async def is_present(connection: Connection) -> bool:
    """Whether nothing is left to apply; only looks."""
    return not (await not_applied(connection))[1]


class Applied(NamedTuple):
    """A row of `migrations`."""

    number: int
    name: str
    serves_from: int | None


async def not_applied(connection: Connection) -> tuple[int, list[Migration]]:
    """The last migration that is there, and what is missing; only looks.

    Refuses a schema that is newer than this program and not made for it.
    """
    applied = await _applied(connection)
    known = all_migrations()
    refuse_the_future(applied, known[-1].number)
    there = {one.number for one in applied}
    missing = [migration for migration in known if migration.number not in there]
    return max(there, default=0), missing


async def last_applied(connection: Connection) -> int:
    """The number of the newest migration that is there; 0 where there is no Fairway."""
    return max((one.number for one in await _applied(connection)), default=0)


async def _applied(connection: Connection) -> list[Applied]:
    if not await connection.fetchval(_IS_FOUNDED):
        return []
    # As JSON: a database that was founded before it has no such column.
    rows = await connection.fetch(
        "SELECT number, name, (to_jsonb(migrations) ->> 'serves_from')::int AS serves_from"
        " FROM migrations ORDER BY number"
    )
    return [Applied(*row) for row in rows]


def refuse_the_future(applied: Sequence[Applied], newest_known: int) -> None:
    """A migration that we do not know must say that servers like us can live with it."""
    for one in reversed(applied):
        if one.number > newest_known and (one.serves_from or one.number) > newest_known:
            raise Unavailable(
                f"The database has migration {one.name!r}, which this version of Fairway"
                " does not know. Start the version that made it, or a newer one.",
                code="SCHEMA_TOO_NEW",
            )


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
    if await connection.fetchval(_IS_HALF_RESTORED):
        raise Unavailable(
            "A restore into this database is under way, or ended before it was done. Wait for it,"
            " or empty the database and restore again.",
            code="RESTORE_UNFINISHED",
        )
    if await is_present(connection) and not (roles and await lacks(connection)):
        return []
    refuse_old_postgres(int(await connection.fetchval("SHOW server_version_num")))
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
        except asyncpg.InsufficientPrivilegeError as error:
            raise Unavailable(
                f"The database lacks migration {migration.name!r}, and this login may not apply it:"
                f" {error}. Run `fairway migrate` as the owner of the tables, or set"
                " FAIRWAY_OWNER_DATABASE_URL.",
                code="SCHEMA_TOO_OLD",
            ) from error
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
        "INSERT INTO migrations (number, name, checksum, serves_from) VALUES ($1, $2, $3, $4)",
        migration.number,
        migration.name,
        migration.checksum,
        migration.serves_from,
    )
