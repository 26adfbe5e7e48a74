"""Time partitions of the job table: which there are, and making them ahead of time.

A partition holds the ids of one span of time; ids without one go to the default partition. DDL on
`jobs` stops every job while it holds or waits for its lock, so it waits briefly and is tried again
by its caller, and never reads a large table under the lock. How partitions go is in
`partition_retirement.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import asyncpg

from fairway.core.ids import lowest_id_at
from fairway.core.unix_time import to_unix_ms
from fairway.store.connections.database import Connection
from fairway.store.connections.node_errors import CancelledInDoubt
from fairway.store.schema.sizes import relation_bytes

SPAN = timedelta(days=1)
AHEAD = 3  # partitions kept ready: a server that is down for two days still finds its place
SMALL_BYTES = 16 << 20  # of the default partition: read in some milliseconds
STRAYS_MAX = 2_000  # moved under a lock; more of them stay where they are

NEAR = timedelta(hours=12)  # ids come from clocks, and clocks may be off
RULE = "none_of_"  # how the names of constraints begin that stand while a partition is made

LOCK_TIMEOUT = "200ms"
LOCKED_SECONDS_MAX = 2  # no step may hold up the others for longer, whatever the reason


#: Rows that only move on to another partition are not accepted again: no event says so (0025).
CARRYING = "SET LOCAL fairway.carrying = 'on'"

TOO_LONG = (asyncpg.QueryCanceledError, CancelledInDoubt)
#: Somebody holds the lock, the step would have held it for too long, or another server makes or
#: drops the same rule at this moment: later.
NOT_NOW = (
    asyncpg.LockNotAvailableError,
    *TOO_LONG,
    asyncpg.DeadlockDetectedError,
    asyncpg.DuplicateObjectError,
    asyncpg.UndefinedObjectError,
)


class Partition(NamedTuple):
    name: str
    begins: datetime
    ends: datetime


def partition_at(moment: datetime) -> Partition:
    begins = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Partition(f"jobs_{begins:%Y%m%d}", begins, begins + SPAN)


def partition_named(name: str) -> Partition:
    return partition_at(datetime.strptime(name[5:], "%Y%m%d").replace(tzinfo=UTC))


async def existing(connection: Connection) -> list[Partition]:
    """Dated partitions, oldest first."""
    rows = await connection.fetch(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = 'jobs'::regclass AND c.relname ~ '^jobs_[0-9]{8}$' ORDER BY 1"
    )
    return [partition_named(row["relname"]) for row in rows]


@asynccontextmanager
async def briefly(connection: Connection) -> AsyncIterator[None]:
    """A transaction that neither waits for a lock nor holds one for long; else it is NOT_NOW."""
    async with connection.transaction():
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        await connection.execute(f"SET LOCAL statement_timeout = '{LOCKED_SECONDS_MAX}s'")
        yield


@asynccontextmanager
async def making(connection: Connection) -> AsyncIterator[None]:
    """As `briefly`, one server at a time: `IF NOT EXISTS` looks before it makes, not while."""
    async with briefly(connection):
        # Of a table that nobody else locks so; an advisory lock can be taken by any login.
        await connection.execute("LOCK TABLE cluster IN SHARE UPDATE EXCLUSIVE MODE")
        yield


async def make_ahead(connection: Connection, now: datetime) -> list[str]:
    """Make today's partition and the next few; answers the names of those that were new."""
    await _drop_left_rules(connection)
    have = {partition.name for partition in await existing(connection)}
    wanted = [partition_at(now + SPAN * offset) for offset in range(-1, AHEAD)]
    missing = [partition for partition in wanted if partition.name not in have]
    return [one.name for one in missing if await _make(connection, one, now)]


async def _make(connection: Connection, partition: Partition, now: datetime) -> bool:
    """False when more jobs came before their partition than can be moved: they stay together."""
    strays = await _count_strays(connection, partition)
    if strays > STRAYS_MAX:
        return False
    is_of_now = partition.begins - NEAR < now < partition.ends + NEAR
    if strays:
        await _make_around(connection, partition)
    elif is_of_now or await _carried_bytes(connection) <= SMALL_BYTES:
        await _make_at_once(connection, partition)
    else:
        await _make_beside(connection, partition)
    return True


async def _make_at_once(connection: Connection, partition: Partition) -> None:
    try:
        async with making(connection):
            await connection.execute(_creation(partition))
    except asyncpg.CheckViolationError:  # a job came before it after all
        await _make_around(connection, partition)


async def _make_around(connection: Connection, partition: Partition) -> None:
    """Move the jobs that were born into the default partition over into their own."""
    strays = _range_of(partition)
    async with making(connection):
        # The other partitions are left out: one is being vacuumed most of the time.
        await connection.execute("LOCK TABLE ONLY jobs, jobs_carried IN ACCESS EXCLUSIVE MODE")
        await connection.execute(
            f"CREATE TEMP TABLE strays ON COMMIT DROP AS SELECT * FROM jobs_carried WHERE {strays}"
        )
        await connection.execute(f"DELETE FROM jobs_carried WHERE {strays}")
        await connection.execute(_creation(partition))
        await connection.execute(CARRYING)
        await connection.execute("INSERT INTO jobs SELECT * FROM strays")


async def _make_beside(connection: Connection, partition: Partition) -> None:
    """Make it without reading a large default partition under the lock.

    PostgreSQL must know that no row there belongs to the new one. A constraint says so, and is
    proven beforehand, while jobs go on. It refuses ids of that day, so it is not used for today.
    """
    rule = f"{RULE}{partition.begins:%Y%m%d}"
    async with briefly(connection):
        await connection.execute(
            f"ALTER TABLE jobs_carried ADD CONSTRAINT {rule}"
            f" CHECK (NOT ({_range_of(partition)})) NOT VALID"
        )
    try:
        await connection.execute(f"ALTER TABLE jobs_carried VALIDATE CONSTRAINT {rule}")
        async with making(connection):
            await connection.execute(_creation(partition))
    finally:
        await _drop_left_rules(connection)


async def _drop_left_rules(connection: Connection) -> None:
    """Those of this try, and of one that was cut short: none may stand when its day comes."""
    rows = await connection.fetch(
        "SELECT conname FROM pg_constraint WHERE conrelid = 'jobs_carried'::regclass"
        " AND starts_with(conname, $1)",
        RULE,
    )
    for row in rows:
        async with briefly(connection):
            await connection.execute(f"ALTER TABLE jobs_carried DROP CONSTRAINT {row['conname']}")


async def _count_strays(connection: Connection, partition: Partition) -> int:
    """Jobs of a partition that is not there; counted so far and no further, without a lock."""
    count: int = await connection.fetchval(
        "SELECT count(*) FROM (SELECT id FROM jobs_carried"
        f" WHERE {_range_of(partition)} LIMIT {STRAYS_MAX + 1}) AS strays"
    )
    return count


async def _carried_bytes(connection: Connection) -> int:
    return await relation_bytes(connection, "jobs_carried")


def _creation(partition: Partition) -> str:
    low, high = _bound(partition.begins), _bound(partition.ends)
    return (
        f"CREATE TABLE IF NOT EXISTS {partition.name} PARTITION OF jobs"
        f" FOR VALUES FROM ('{low}') TO ('{high}')"
        # Queue tables live or die by vacuum: start early, do not rest in between.
        " WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000,"
        " autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 50000)"
    )


def _range_of(partition: Partition) -> str:
    return f"id >= '{_bound(partition.begins)}' AND id < '{_bound(partition.ends)}'"


def _bound(moment: datetime) -> str:
    return lowest_id_at(to_unix_ms(moment))
