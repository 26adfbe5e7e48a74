"""How a partition goes when its time has passed, in steps that are each short and lose nothing.

Rows that must live on (not final yet, or final only lately) are carried into the default partition
while the old one is taken off, under one short lock; so only a few may be. A partition in which
many live on stays, and loses its old rows a part at a time. What was taken off is read once more,
for rows that ended meanwhile, and dropped. A crash between two steps leaves something that the next
round finds: an old partition, or a table of its name that is no partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from fairway.core.ids import ShardId, TenantId
from fairway.core.retention import CARRY_ROWS_MAX, Load
from fairway.store.connections.database import Connection
from fairway.store.schema.partitions import CARRYING, briefly
from fairway.store.schema.sizes import relation_bytes

#: Few rows of a table that may be huge: whatever the statistics say, by its indexes.
_BY_INDEX = (
    "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;"
    " SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
)
_PAGES = "ctid >= $1::text::tid AND ctid < $2::text::tid"
_WEIGHT = "octet_length(payload) + coalesce(octet_length(result), 0)"


class Late(NamedTuple):
    """A row that ended too lately to go."""

    shard: ShardId
    tenant: TenantId
    id: str
    weight_bytes: int


async def page_count(connection: Connection, table: str) -> int:
    page_bytes = await connection.fetchval("SELECT current_setting('block_size')::int")
    return await relation_bytes(connection, table) // int(page_bytes)


async def weigh_waiting(connection: Connection, table: str) -> Load:
    """Rows that are not final: by the indexes of each state, so far and no further."""
    total = Load()
    async with connection.transaction():
        await connection.execute(_BY_INDEX)
        for state in (0, 1, 2):
            row = await connection.fetchrow(
                f"SELECT count(*) AS rows, coalesce(sum({_WEIGHT}), 0)::bigint AS bytes FROM"
                f" (SELECT payload, result FROM {table} WHERE state = {state}"
                f" LIMIT {CARRY_ROWS_MAX + 1}) AS waiting"
            )
            total = total.plus(Load(row["rows"], row["bytes"]))
    return total


async def late_rows(
    connection: Connection, table: str, pages: range, keep_since: datetime
) -> list[Late]:
    """Final rows of these pages that must be kept, so many at most that carrying is off anyway."""
    rows = await connection.fetch(
        f"SELECT shard, tenant, id::text AS id, {_WEIGHT} AS weight FROM {table}"
        f" WHERE {_PAGES} AND finished_at >= $3 LIMIT {CARRY_ROWS_MAX + 1}",
        *_ends(pages),
        keep_since,
    )
    return [Late(*row) for row in rows]


async def thin(connection: Connection, table: str, pages: range, keep_since: datetime) -> int:
    """Delete the rows of these pages that are final and old; answers how many.

    A dead letter that is replayed meanwhile is looked at again, and stays.
    """
    tag: str = await connection.execute(
        f"DELETE FROM {table} WHERE {_PAGES} AND finished_at < $3", *_ends(pages), keep_since
    )
    return _count(tag)


async def is_being_vacuumed(connection: Connection, table: str) -> bool:
    """A detach would wait for it, with everybody else behind."""
    found: bool = await connection.fetchval(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE mode = 'ShareUpdateExclusiveLock' AND relation"
        " IN ($1::text::regclass, 'jobs'::regclass, 'jobs_carried'::regclass))",
        table,
    )
    return found


async def detach(connection: Connection, table: str, late: Sequence[Late]) -> int:
    """Take a partition off and carry on what lives, in one short step; answers how many rows.

    The lock keeps every writer out: an owner's write finds its row before it or after it.
    """
    async with briefly(connection):
        await connection.execute(f"{_BY_INDEX}; {CARRYING}")
        await connection.execute(f"ALTER TABLE jobs DETACH PARTITION {table}")
        tag = await connection.execute(
            f"INSERT INTO jobs SELECT * FROM {table} WHERE state = 0"
            f" UNION ALL SELECT * FROM {table} WHERE state = 1"
            f" UNION ALL SELECT * FROM {table} WHERE state = 2"
            f" UNION ALL SELECT old.* FROM unnest($1::int[], $2::int[], $3::uuid[])"
            f" AS late (shard, tenant, id) JOIN {table} AS old USING (shard, tenant, id)"
            f" WHERE old.state >= 3",
            [row.shard for row in late],
            [row.tenant for row in late],
            [row.id for row in late],
        )
    return _count(tag)


async def detached(connection: Connection) -> list[str]:
    """Tables that were partitions and are not dropped yet."""
    rows = await connection.fetch(
        "SELECT c.relname FROM pg_class c JOIN pg_class j ON j.oid = 'jobs'::regclass"
        " WHERE c.relnamespace = j.relnamespace AND c.relname ~ '^jobs_[0-9]{8}$'"
        " AND c.relkind = 'r' AND NOT c.relispartition ORDER BY 1"
    )
    return [row["relname"] for row in rows]


async def is_settled(connection: Connection) -> bool:
    """Whether every job that is there can be found, now and as long as the transaction lasts.

    A job that ended just before its partition was taken off is in none until it is carried. Nobody
    but a detach waits for this lock, and that one tries again.
    """
    await connection.execute("LOCK TABLE ONLY jobs IN ACCESS SHARE MODE")
    return not await detached(connection)


async def carry_missed(
    connection: Connection, table: str, pages: range, keep_since: datetime
) -> int:
    """Rows of a table that was taken off which ended between the survey and that moment."""
    async with connection.transaction():
        await connection.execute(CARRYING)
        tag = await connection.execute(
            f"INSERT INTO jobs SELECT * FROM {table} WHERE {_PAGES} AND finished_at >= $3"
            " ON CONFLICT DO NOTHING",
            *_ends(pages),
            keep_since,
        )
    return _count(tag)


async def drop(connection: Connection, table: str) -> None:
    """Nobody knows this table any more: no job waits for it."""
    async with briefly(connection):
        await connection.execute(f"DROP TABLE {table}")


async def sweep_carried(connection: Connection, keep_since: datetime, limit: int) -> int:
    """Delete carried jobs that are done and past their retention.

    The row is asked again for its end: one that is replayed meanwhile stays.
    """
    tag: str = await connection.execute(
        "DELETE FROM jobs_carried WHERE (shard, tenant, id) IN ("
        "SELECT shard, tenant, id FROM jobs_carried WHERE finished_at < $1 LIMIT $2)"
        " AND finished_at < $1"
        if getattr(connection, "placement", None) is not None
        else "DELETE FROM jobs_carried WHERE ctid = ANY(ARRAY("
        "SELECT ctid FROM jobs_carried WHERE finished_at < $1 LIMIT $2)) AND finished_at < $1",
        keep_since,
        limit,
    )
    return _count(tag)


def _ends(pages: range) -> tuple[str, str]:
    return f"({pages.start},0)", f"({pages.stop},0)"


def _count(tag: str) -> int:
    return int(tag.rsplit(" ", 1)[-1])
