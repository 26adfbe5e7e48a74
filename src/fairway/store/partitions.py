"""Time partitions of the job table: made ahead, dropped behind, nothing lost with them.

A partition holds the ids of one span of time. When it is past its retention, the few rows that
must live on (not final yet, or final only lately) are carried into the default partition in the
same transaction that drops it: a job scheduled for next year neither pins its partition nor falls
out with it. Carried rows that are done and old are deleted one bounded round at a time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import asyncpg

from fairway.core.ids import lowest_id_at
from fairway.store.database import Connection

SPAN = timedelta(days=1)
AHEAD = 3  # partitions kept ready: a server that is down for two days still finds its place


class Partition(NamedTuple):
    name: str
    begins: datetime
    ends: datetime


def partition_at(moment: datetime) -> Partition:
    begins = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return Partition(f"jobs_{begins:%Y%m%d}", begins, begins + SPAN)


async def existing(connection: Connection) -> list[Partition]:
    """Dated partitions, oldest first."""
    rows = await connection.fetch(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = 'jobs'::regclass AND c.relname ~ '^jobs_[0-9]{8}$' ORDER BY 1"
    )
    return [
        partition_at(datetime.strptime(row["relname"][5:], "%Y%m%d").replace(tzinfo=UTC))
        for row in rows
    ]


async def make_ahead(connection: Connection, now: datetime) -> list[str]:
    """Make today's partition and the next few; answers the names of those that were new."""
    have = {partition.name for partition in await existing(connection)}
    wanted = [partition_at(now + SPAN * offset) for offset in range(-1, AHEAD)]
    missing = [partition for partition in wanted if partition.name not in have]
    for partition in missing:
        await _make(connection, partition)
    return [partition.name for partition in missing]


async def _make(connection: Connection, partition: Partition) -> None:
    try:
        await connection.execute(_creation(partition))
    except asyncpg.CheckViolationError:  # jobs came before their partition was there
        await _make_around(connection, partition)


async def _make_around(connection: Connection, partition: Partition) -> None:
    """Move jobs that were born into the default partition over into their own."""
    strays = f"id >= '{_bound(partition.begins)}' AND id < '{_bound(partition.ends)}'"
    async with connection.transaction():
        await connection.execute("SET LOCAL lock_timeout = '2s'")
        await connection.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        await connection.execute(
            f"CREATE TEMP TABLE strays ON COMMIT DROP AS SELECT * FROM jobs_carried WHERE {strays}"
        )
        await connection.execute(f"DELETE FROM jobs_carried WHERE {strays}")
        await connection.execute(_creation(partition))
        await connection.execute("INSERT INTO jobs SELECT * FROM strays")


def _creation(partition: Partition) -> str:
    low, high = _bound(partition.begins), _bound(partition.ends)
    return (
        f"CREATE TABLE IF NOT EXISTS {partition.name} PARTITION OF jobs"
        f" FOR VALUES FROM ('{low}') TO ('{high}')"
        # Queue tables live or die by vacuum: start early, do not rest in between.
        " WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 20000,"
        " autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 50000)"
    )


async def retire(connection: Connection, partition: Partition, keep_since: datetime) -> int:
    """Drop a partition whose time has passed; answers how many rows were carried on."""
    async with connection.transaction():
        await connection.execute("SET LOCAL lock_timeout = '2s'")
        await connection.execute(f"ALTER TABLE jobs DETACH PARTITION {partition.name}")
        tag = await connection.execute(
            f"INSERT INTO jobs SELECT * FROM {partition.name}"
            " WHERE finished_at IS NULL OR finished_at >= $1",
            keep_since,
        )
        await connection.execute(f"DROP TABLE {partition.name}")
    return int(tag.rsplit(" ", 1)[-1])


async def sweep_carried(connection: Connection, keep_since: datetime, limit: int) -> int:
    """Delete carried jobs that are done and past their retention."""
    tag: str = await connection.execute(
        "DELETE FROM jobs_carried WHERE ctid = ANY(ARRAY("
        "SELECT ctid FROM jobs_carried WHERE finished_at < $1 LIMIT $2))",
        keep_since,
        limit,
    )
    return int(tag.rsplit(" ", 1)[-1])


def _bound(moment: datetime) -> str:
    return lowest_id_at(int(moment.timestamp() * 1000))
