"""A real PostgreSQL for tests: one server a session, one fresh database a test.

The server is the embedded one, or the one that FAIRWAY_TEST_DATABASE_URL names. Databases are
copied from a template that holds the present schema and its partitions; one that a test left in
the same shape is emptied and used again, since that takes a tenth of the time.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg

from fairway.store.connections.database import Connection
from fairway.store.connections.known_types import TypedConnection
from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.store.postgres.os_user import account_for, traversable_by
from fairway.store.schema import partitions
from fairway.store.schema.log_partitions import make_log_days
from fairway.store.schema.migrate import migrate

T = TypeVar("T")
MEMORY_BYTES_MIN = 4 << 30


Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL that tests may make databases in, and the template to copy them from."""

    dsn: str
    template: str
    tables: list[str]  # of the template
    indexes: list[str]
    seeds: dict[str, list[Row]]  # what the migrations wrote into them
    stock: list[str] = field(default_factory=list)  # databases that are as good as new


@contextmanager
def open_room(shared: Path | None = None) -> Iterator[Path]:
    """An empty folder that every account can reach, unlike pytest's own."""
    shared = shared or Path(tempfile.gettempdir())
    if traversable_by(account_for(shared / "absent"), shared / "absent") is not None:
        shared = Path("/tmp")
    with tempfile.TemporaryDirectory(prefix="fw-", dir=shared) as made:
        Path(made).chmod(0o755)
        yield Path(made)


@contextmanager
def serve() -> Iterator[Server]:
    """The session's server with its template, from start to stop."""
    with _given() if os.environ.get("FAIRWAY_TEST_DATABASE_URL") else _embedded() as dsn:
        template = _new_name("template")
        server = Server(dsn, template, *in_thread(_make_template(dsn, template)))
        try:
            yield server
        finally:
            for name in (template, *server.stock):
                in_thread(drop_database(dsn, name))


@contextmanager
def _given() -> Iterator[str]:
    yield os.environ["FAIRWAY_TEST_DATABASE_URL"]


@contextmanager
def _embedded() -> Iterator[str]:
    with open_room(_fast_disk()) as room:
        postgres = EmbeddedPostgres(room / "data")
        dsn = in_thread(postgres.start(lambda message: None))
        try:
            in_thread(_calm_vacuum(dsn))
            yield dsn
        finally:
            in_thread(postgres.stop())


def _fast_disk() -> Path | None:
    """Memory, where there is plenty: how long a disk takes to sync is not what tests look at."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > MEMORY_BYTES_MIN
    return memory if roomy else None


async def _calm_vacuum(dsn: str) -> None:
    """Hundreds of small databases come and go; durability stays as it is for users."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("ALTER SYSTEM SET autovacuum_naptime = '60s'")
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


async def _make_template(dsn: str, name: str) -> tuple[list[str], list[str], dict[str, list[Row]]]:
    await make_database(dsn, name, "template0")
    connection = await asyncpg.connect(at_database(dsn, name))
    try:
        await migrate(connection)
        await partitions.make_ahead(connection, datetime.now(UTC))
        await make_log_days(connection, datetime.now(UTC))
        tables = await _tables(connection)
        seeds = {
            table: [tuple(row) for row in await connection.fetch(f"SELECT * FROM {table}")]
            for table in tables
            if not table.startswith("jobs")
        }
        kept = {table: rows for table, rows in seeds.items() if rows}
        return tables, await _relations(connection, "iI"), kept
    finally:
        await connection.close()


@asynccontextmanager
async def fresh_database(server: Server, *, empty: bool = False) -> AsyncIterator[str]:
    """A database of one test's own; answers where to connect."""
    if empty or not server.stock:
        name = _new_name("test")
        await make_database(server.dsn, name, "template0" if empty else server.template)
    else:
        name = server.stock.pop()
    try:
        yield at_database(server.dsn, name)
    finally:
        if not empty and await _emptied(server, name):
            server.stock.append(name)
        else:
            await drop_database(server.dsn, name)


async def _emptied(server: Server, name: str) -> bool:
    """Make a used database as good as new; False when its shape was changed, or it grew large."""
    async with connected(at_database(server.dsn, name)) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        is_changed = await _tables(connection) != server.tables
        if is_changed or await _relations(connection, "iI") != server.indexes:
            return False
        if await _is_large(connection):
            return False
        await connection.execute("SET session_replication_role = replica")  # in any order
        emptying = [f"DELETE FROM {table}" for table in await _written(connection)]
        await connection.execute("; ".join(emptying) or "SELECT")
        for table, rows in server.seeds.items():
            await connection.copy_records_to_table(table, records=rows)
        await connection.execute("SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'")
    return True


async def _written(connection: Connection) -> list[str]:
    """Tables that anything was ever written to: most of them have no page at all."""
    rows = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind = 'r' AND pg_relation_size(oid) > 0"
    )
    return [row["relname"] for row in rows]


async def _tables(connection: Connection) -> list[str]:
    return await _relations(connection, "rp")


async def _relations(connection: Connection, kinds: str) -> list[str]:
    rows = await connection.fetch(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND strpos($1, relkind::text) > 0 ORDER BY 1",
        kinds,
    )
    return [row["relname"] for row in rows]


async def _is_large(connection: Connection) -> bool:
    rows: int = await connection.fetchval(
        "SELECT coalesce(sum(n_tup_ins), 0) FROM pg_stat_user_tables"
    )
    return rows > 2000


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[Connection]:
    """A plain connection, apart from any pool of ours."""
    connection = await asyncpg.connect(dsn, connection_class=TypedConnection)
    try:
        yield connection
    finally:
        connection.terminate()


async def make_database(dsn: str, name: str, template: str) -> None:
    async with connected(dsn) as connection:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")


async def drop_database(dsn: str, name: str) -> None:
    async with connected(dsn) as connection:
        await connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def at_database(dsn: str, name: str) -> str:
    """The same server, another database."""
    parts = urlsplit(dsn)
    return f"{parts.scheme}://{parts.netloc}/{name}?{parts.query}"


@contextmanager
def own_database(server: Server, name: str) -> Iterator[str]:
    """A database for some tests alone, with the schema in it; for who is in no event loop."""
    in_thread(make_database(server.dsn, name, template=server.template))
    try:
        yield at_database(server.dsn, name)
    finally:
        in_thread(drop_database(server.dsn, name))


def in_thread(work: Coroutine[Any, Any, T], seconds: float = 100.0) -> T:
    """Run to the end in an event loop of its own, whatever this thread's loop is doing.

    The thread is nobody's to join: should the work hang, the one who waits for it hears of it.
    """
    found: Future[T] = Future()

    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            return await work

    def run() -> None:
        try:
            found.set_result(asyncio.run(bounded()))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return found.result(seconds + 20)


def _new_name(kind: str) -> str:
    return f"{kind}_{os.getpid()}_{secrets.token_hex(4)}"
