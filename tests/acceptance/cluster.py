"""Houses on a Citus cluster: with FAIRWAY_TEST_CITUS_URL each has a database of its own there.

The address is that of any database of a coordinator whose data nodes are known to it. A template is
founded and distributed once a session; a house's database is its copy, on each node by itself: what
Citus knows of nodes and tables is copied with it. Tests that bring their own PostgreSQL keep it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit
from uuid import uuid4

from tests.postgres import Server, at_database, connected, fresh_database, in_thread

from fairway.store.connections.database import Connection
from fairway.store.connections.placement import is_distributed
from fairway.store.registry.tenants import add_shards, found_cluster
from fairway.store.schema import partitions
from fairway.store.schema.distribution import distribute
from fairway.store.schema.log_partitions import make_log_days
from fairway.store.schema.migrate import migrate_at, silent

URL = os.environ.get("FAIRWAY_TEST_CITUS_URL", "")
#: Of every server there: nodes hear nothing of the tenant who asks.
SETTINGS = {"FAIRWAY_ROW_SECURITY": "false"} if URL else {}
SHARDS = 1  # as in every house: tests ask for the one owner
MAKING_SECONDS = 300.0

_NODES = "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' AND groupid <> 0"
_COORDINATOR = "SELECT citus_set_coordinator_host($1, $2)"
_LEAVE = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1"
#: What tests ask by hand takes seconds otherwise; and they write down what happens to jobs.
_EASE = (
    "ALTER DATABASE {name} SET citus.enable_unsafe_triggers = on",
    "ALTER DATABASE {name} SET citus.override_table_visibility = off",
)


class Cluster(NamedTuple):
    """Where its nodes are, the coordinator first, and the database to copy."""

    urls: list[str]
    template: str


Store: TypeAlias = Server | Cluster


@contextmanager
def serve_cluster() -> Iterator[Cluster]:
    cluster = in_thread(_make_template(), MAKING_SECONDS)
    try:
        yield cluster
    finally:
        in_thread(_drop(cluster.urls, cluster.template), MAKING_SECONDS)


@asynccontextmanager
async def house_database(store: Store) -> AsyncIterator[str]:
    """An empty database with the present schema, wherever houses stand."""
    if isinstance(store, Server):
        async with fresh_database(store) as dsn:
            yield dsn
        return
    name = _new_name()
    try:
        for url in store.urls:
            await _run(url, f"CREATE DATABASE {name} TEMPLATE {store.template} STRATEGY FILE_COPY")
            for statement in _EASE:
                await _run(url, statement.format(name=name))
        yield f"{at_database(store.urls[0], name)}sslmode=disable"  # programs add more to it
    finally:
        await _drop(store.urls, name)


async def found_anew(dsn: str, shards: int) -> None:
    """On a cluster the template was founded already."""
    async with connected(dsn) as connection:
        if await is_distributed(connection):
            await connection.execute("UPDATE cluster SET shard_count = $1", shards)
            await add_shards(connection, shards)


async def _make_template() -> Cluster:
    async with connected(URL) as connection:
        nodes = [tuple(row) for row in await connection.fetch(_NODES)]
    here = urlsplit(URL)
    urls = [URL, *(here._replace(netloc=f"{here.username}@{h}:{p}").geturl() for h, p in nodes)]
    name = _new_name()
    for url in urls:
        await _run(url, f"CREATE DATABASE {name}")
        await _run(at_database(url, name), "CREATE EXTENSION citus")
    dsn = at_database(URL, name)
    async with connected(dsn) as connection:
        await connection.fetchval(_COORDINATOR, here.hostname, here.port)
        for host, port in nodes:
            await connection.fetchval("SELECT citus_add_node($1, $2)", host, port)
    await migrate_at(dsn, roles=False)
    async with connected(dsn) as connection:
        await _lay_out(connection)
    for url in urls:
        await _run(url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        async with connected(url) as connection:
            await connection.fetch(_LEAVE, name)
    return Cluster(urls, name)


async def _lay_out(connection: Connection) -> None:
    await distribute(connection, silent)
    await found_cluster(connection, SHARDS, "secret")
    await partitions.make_ahead(connection, datetime.now(UTC))
    await make_log_days(connection, datetime.now(UTC))


async def _drop(urls: list[str], name: str) -> None:
    for url in urls:
        await _run(url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


async def _run(url: str, statement: str) -> None:
    """On this node alone."""
    async with connected(url) as connection:
        await connection.execute("SET citus.enable_create_database_propagation = off")
        await connection.execute("SET citus.enable_ddl_propagation = off")
        await connection.execute(statement)


def _new_name() -> str:
    return f"house_{uuid4().hex[:12]}"
