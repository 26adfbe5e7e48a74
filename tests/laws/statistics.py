"""What PostgreSQL may believe of today's jobs when it plans, and what is there when it runs.

A queue is empty most of the time, a partition is empty until its day begins, and nobody analyses
either when that changes. Each way of being wrong is made for real: rows, VACUUM and ANALYZE in the
order in which life has them, then rows that came after. Autovacuum is off, so nothing mends it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import asyncpg
from tests.postgres import Server, at_database, drop_database, make_database

from fairway.store.connections.database import Connection
from fairway.store.registry.tenants import found_cluster
from fairway.store.schema.partitions import partition_at

NOW = datetime.now(UTC)
TODAY = partition_at(NOW)
DUE = NOW - timedelta(seconds=5)
TENANTS = 50
BEFORE = 20_000  # rows that were there when statistics were taken
OTHERS_MAX = 5000  # rows that come with the queue and are not in it
QUEUE, DEAD, WAITING = 1_000_000, 2_000_000, 3_000_000  # numbers of rows that came after that


async def put(connection: Connection, state: int, numbers: range, **columns: str) -> None:
    """Jobs of today in one state; their ids come in the order of their numbers."""
    first_ms = int(TODAY.begins.timestamp() * 1000)
    values = {
        "shard": "0",
        "id": f"(lpad(to_hex({first_ms} + n / 10), 12, '0') || '70008'"
        " || lpad(to_hex(n), 15, '0'))::uuid",
        "tenant": f"n % {TENANTS} + 1",
        "type": "1", "pool": "1", "priority": "5", "state": str(state), "payload": "'{}'",
    } | columns  # fmt: skip
    await connection.execute(
        f"INSERT INTO {TODAY.name} ({', '.join(values)}) SELECT {', '.join(values.values())}"
        f" FROM generate_series({numbers.start}, {numbers.stop - 1}) AS n"
    )


async def finished(connection: Connection, count: int, first: int = 0) -> None:
    await put(connection, 3, range(first, first + count), finished_at="now()")


async def scheduled(connection: Connection, count: int, first: int = 0) -> None:
    moment = "now() + interval '200 days'"
    await put(connection, 0, range(first, first + count), execute_at=moment)


async def queued(connection: Connection, count: int, first: int = 0) -> None:
    await put(connection, 1, range(first, first + count))


async def never_analysed(connection: Connection) -> None:
    assert await believed_rows(connection) == -1


async def analysed_empty(connection: Connection) -> None:
    """A nightly `vacuumdb --analyze` a minute before the day began."""
    await connection.execute(f"VACUUM ANALYZE {TODAY.name}")
    assert await believed_rows(connection) == 0


async def purged(connection: Connection) -> None:
    """Pages, and no row in them: all estimates are zero, however many rows come."""
    await queued(connection, 2000)
    await connection.execute(f"DELETE FROM {TODAY.name}")
    await connection.execute(f"VACUUM (ANALYZE, TRUNCATE off) {TODAY.name}")
    assert await believed_rows(connection) == 0


async def all_final(connection: Connection) -> None:
    """A healthy platform: everything is done, nothing is queued."""
    await finished(connection, BEFORE)
    await connection.execute(f"VACUUM ANALYZE {TODAY.name}")


async def all_scheduled(connection: Connection) -> None:
    await scheduled(connection, BEFORE)
    await connection.execute(f"ANALYZE {TODAY.name}")


async def full(connection: Connection) -> None:
    await queued(connection, BEFORE)
    await connection.execute(f"ANALYZE {TODAY.name}")


async def full_then_drained(connection: Connection) -> None:
    await full(connection)
    await connection.execute(f"UPDATE {TODAY.name} SET state = 3, finished_at = now()")
    await connection.execute(f"VACUUM {TODAY.name}")  # counts rows, and samples none


async def fresh(connection: Connection) -> None:
    part = BEFORE // 2
    await finished(connection, part)
    await scheduled(connection, part, part)
    await queued(connection, part, 2 * part)
    await connection.execute(f"VACUUM ANALYZE {TODAY.name}")


async def believed_rows(connection: Connection) -> float:
    rows: float = await connection.fetchval(
        "SELECT reltuples FROM pg_class WHERE relname = $1", TODAY.name
    )
    return rows


BELIEFS: tuple[Callable[[Connection], Awaitable[None]], ...] = (
    never_analysed, analysed_empty, purged, all_final, all_scheduled, full, full_then_drained,
    fresh,
)  # fmt: skip


@asynccontextmanager
async def believing(
    server: Server, belief: Callable[[Connection], Awaitable[None]]
) -> AsyncIterator[tuple[str, Connection]]:
    """A database of its own with these statistics; answers where it is, and a connection."""
    name = f"belief_{belief.__name__}_{os.getpid()}"
    await make_database(server.dsn, name, server.template)
    dsn = at_database(server.dsn, name)
    connection = await asyncpg.connect(dsn, server_settings={"synchronous_commit": "off"})
    try:
        await connection.execute(f"ALTER TABLE {TODAY.name} SET (autovacuum_enabled = off)")
        await found_cluster(connection, 1, "secret")
        await connection.execute("UPDATE shards SET term = 1, expires_at = 'infinity'")
        await belief(connection)
        yield dsn, connection
    finally:
        await connection.close()
        await drop_database(server.dsn, name)


async def arrive(connection: Connection, first: int, depth: int) -> None:
    """The queue grows to this depth; some jobs die meanwhile, all of one tenant, or come due."""
    low, high = min(first, OTHERS_MAX), min(depth, OTHERS_MAX)
    died = {"tenant": "1", "finished_at": "now()", "fingerprint": "7"}
    await put(connection, 1, range(QUEUE + first, QUEUE + depth))
    await put(connection, 4, range(DEAD + low, DEAD + high), **died)
    due = f"to_timestamp({int(DUE.timestamp())})"
    await put(connection, 0, range(WAITING + low, WAITING + high), execute_at=due)
