"""What `migrate` would do to a database: which files, which locks, and how long about.

It reads the list of applied migrations and the sizes of tables, and changes nothing. Times are
estimates from sizes: what reads a whole table goes at some tens of megabytes a second, all else is
a change of the catalogue.
"""

from __future__ import annotations

from typing import NamedTuple

from fairway.store.connections.database import Connection
from fairway.store.schema.lock_rules import UNKNOWN, Effect, Kind, effects, stronger
from fairway.store.schema.migrate import Migration, index_of, not_applied

READ_BYTES_PER_SECOND = 50e6
ONLINE = "SHARE UPDATE EXCLUSIVE"  # of an index that is built beside the work

_SIZE = """
SELECT coalesce(sum(pg_relation_size(relid)), pg_relation_size(to_regclass($1)), 0)::bigint
FROM pg_partition_tree(to_regclass($1)) WHERE isleaf
"""
_TABLE_OF_INDEX = "SELECT indrelid::regclass::text FROM pg_index WHERE indexrelid = to_regclass($1)"


class PlannedMigration(NamedTuple):
    name: str
    kind: Kind  # whether servers of the version before can live with it
    locks: dict[str, str]  # by table
    is_online: bool  # an index built beside the work
    seconds: float  # about
    serves_from: int  # the oldest schema whose servers may be started on it


class Plan(NamedTuple):
    applied: int  # the last migration that is there; 0 for an empty database
    migrations: list[PlannedMigration]

    @property
    def old_servers_start(self) -> bool:
        """Whether a server of the version before may be started again on the new schema."""
        return all(one.serves_from <= self.applied for one in self.migrations)


async def plan(connection: Connection) -> Plan:
    applied, missing = await not_applied(connection)
    return Plan(applied, [await _planned(connection, one) for one in missing])


async def _planned(connection: Connection, migration: Migration) -> PlannedMigration:
    if index_of(migration) is not None:
        seconds = await _bytes(connection, "jobs") / READ_BYTES_PER_SECOND
        return PlannedMigration(
            migration.name, "expand", {"jobs": ONLINE}, True, seconds, migration.serves_from
        )
    found = [await _resolved(connection, one) for one in effects(migration.text)]
    locks: dict[str, str] = {}
    for effect in found:
        if effect.table:
            locks[effect.table] = stronger(effect.mode, locks.get(effect.table, effect.mode))
    large = {one.table for one in found if one.reads_all and one.table != UNKNOWN}
    size_bytes = sum([await _bytes(connection, table) for table in large])
    return PlannedMigration(
        migration.name,
        "contract" if any(one.kind == "contract" for one in found) else "expand",
        locks,
        False,
        size_bytes / READ_BYTES_PER_SECOND,
        migration.serves_from,
    )


async def _resolved(connection: Connection, effect: Effect) -> Effect:
    """Whose table an index is of, as far as that is there yet."""
    if not effect.table.startswith("index:"):
        return effect
    name = effect.table.removeprefix("index:")
    table = await connection.fetchval(_TABLE_OF_INDEX, name)
    return effect._replace(table=table or f"the table of {name}")


async def _bytes(connection: Connection, table: str) -> int:
    """Of the table and its partitions; nothing where there is none yet."""
    size: int | None = await connection.fetchval(_SIZE, table)
    return size or 0
