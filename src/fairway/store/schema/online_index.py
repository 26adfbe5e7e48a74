"""Adds an index to the job table while it is in use: no lock that a submission would feel.

PostgreSQL builds an index beside the work only on a plain table, so each partition gets its own
and all are joined under the one of `jobs`. It may be cut short at any point and begun again. Small
tables, as in a new database, get it in one go.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fairway.store.connections.database import Connection

SMALL_BYTES = 16 << 20  # indexed in a moment
_FILE = re.compile(r"\A-- index: (?P<name>[a-z_]+)\n(?P<rest>.+)\Z", re.DOTALL)


class NewIndex(NamedTuple):
    name: str
    definition: str  # what stands after the table's name: columns and predicate


def parse_index(text: str) -> NewIndex | None:
    """The index of a migration that begins with `-- index: name`; None for any other."""
    found = _FILE.match(text)
    if found is None:
        return None
    body = re.sub(r"--[^\n]*", "", found["rest"]).strip().rstrip(";").strip()
    return NewIndex(found["name"], body)


async def add_index(connection: Connection, index: NewIndex) -> None:
    if await _total_bytes(connection) <= SMALL_BYTES:
        await _briefly(
            connection, f"CREATE INDEX IF NOT EXISTS {index.name} ON jobs {index.definition}"
        )
        return
    await _briefly(
        connection, f"CREATE INDEX IF NOT EXISTS {index.name} ON ONLY jobs {index.definition}"
    )
    for partition in await _without(connection, index.name):  # newer ones are made with it
        own = f"{partition}_{index.name.removeprefix('jobs_')}"
        await _drop_half_built(connection, own)
        await connection.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {own} ON {partition} {index.definition}"
        )
        await _briefly(connection, f"ALTER INDEX {index.name} ATTACH PARTITION {own}")


async def _briefly(connection: Connection, statement: str) -> None:
    async with connection.transaction():
        await connection.execute("SET LOCAL lock_timeout = '200ms'")
        await connection.execute(statement)


async def _total_bytes(connection: Connection) -> int:
    total: int = await connection.fetchval(
        "SELECT coalesce(sum(pg_relation_size(inhrelid)), 0)::bigint FROM pg_inherits"
        " WHERE inhparent = 'jobs'::regclass"
    )
    return total


async def _without(connection: Connection, name: str) -> list[str]:
    """Partitions that have no part of this index yet."""
    rows = await connection.fetch(
        "SELECT child.inhrelid::regclass::text AS name FROM pg_inherits AS child"
        " WHERE child.inhparent = 'jobs'::regclass AND NOT EXISTS ("
        "  SELECT FROM pg_index JOIN pg_inherits AS part ON part.inhrelid = pg_index.indexrelid"
        "  WHERE pg_index.indrelid = child.inhrelid AND part.inhparent = $1::text::regclass"
        ") ORDER BY 1",
        name,
    )
    return [row["name"] for row in rows]


async def _drop_half_built(connection: Connection, name: str) -> None:
    """What a try before this one left behind."""
    is_half_built = await connection.fetchval(
        "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)", name
    )
    if is_half_built:
        await connection.execute(f"DROP INDEX CONCURRENTLY {name}")
