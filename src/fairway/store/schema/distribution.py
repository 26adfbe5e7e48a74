"""Distributes the tables of a founded database over the nodes of a Citus cluster.

What has a shard lies with its shard, all tables of a shard on one node, so that an owner's
transaction is a matter of one node. All else stays with the coordinator, where every server asks: a
node that is away keeps nobody from adding a tenant, and nothing is written on all nodes at once.
Every step can be cut short and done again. A database in which jobs were accepted before it was
distributed is refused: moving them is not done here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import asyncpg

from fairway.core.errors import Unavailable
from fairway.store.connections.database import Connection, Record
from fairway.store.connections.placement import has_citus

#: With their shards; the first decides where, the others lie beside it.
BY_SHARD = (
    "shards",
    "jobs",
    "sessions",
    "idempotency",
    "unique_jobs",
    "fair_share",
    "bulk_actions",
    "event_inbox",
    "event_heads",
    "event_log",
    "schedules",
    "schedule_runs",
    "checkpoints",
    "job_logs",
    "outbox",
    "flows",
    "flow_turns",
    "usage_log",
    "webhooks",
    "webhook_deliveries",
    "held_jobs",
    "rate_windows",
)
#: With the coordinator, and known to Citus: what is written there and on a node in one transaction
#: is kept on both or on neither (two phases). Of other tables it knows nothing: a coordinator that
#: died between a node's commit and its own would have lost what was taken from the log and not yet
#: booked.
WITH_COORDINATOR = "billing_shards"
PARTS_PER_NODE = 2  # of the store's own: each costs statements; a node that joins is given some

Say: TypeAlias = Callable[[str], None]

_NODES = """
SELECT nodename || ':' || nodeport AS address, isactive FROM pg_dist_node
WHERE noderole = 'primary' AND shouldhaveshards AND groupid <> 0 ORDER BY nodeid
"""
_NODE_SETTINGS = """
SELECT nodename || ':' || nodeport AS address, success,
       result = 'on on on' AS is_durable, result
FROM run_command_on_workers(
    $$SELECT concat_ws(' ', current_setting('fsync'), current_setting('full_page_writes'),
                       CASE current_setting('synchronous_commit')
                       WHEN 'off' THEN 'off' ELSE 'on' END)$$
)
"""
_DISTRIBUTED = "SELECT logicalrelid::text FROM pg_dist_partition WHERE partmethod = 'h'"
_KNOWN = "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = $1::text::regclass)"


class Distribution(NamedTuple):
    """What was done."""

    tables: list[str]  # new ones
    parts: int
    nodes: int


async def distribute(connection: Connection, say: Say, parts: int | None = None) -> Distribution:
    """Distribute what is not yet, on a connection to the coordinator as the tables' owner."""
    nodes = await _nodes(connection)
    done = {row[0] for row in await connection.fetch(_DISTRIBUTED)}
    missing = [table for table in BY_SHARD if table not in done]
    if missing:
        await _refuse_jobs(connection, missing)
    parts = parts or PARTS_PER_NODE * len(nodes)
    await connection.execute(
        "SET citus.enable_unsafe_triggers = on; SET client_min_messages = warning;"
        " SET citus.override_table_visibility = off; SET statement_timeout = 0"
    )
    for table in missing:
        await _distribute(connection, table, parts)
        say(f"Table {table}: by shard.")
    if not await connection.fetchval(_KNOWN, WITH_COORDINATOR):
        await connection.execute(f"SELECT citus_add_local_table_to_metadata('{WITH_COORDINATOR}')")
        say(f"Table {WITH_COORDINATOR}: with the coordinator.")
    return Distribution(missing, parts, len(nodes))


async def _nodes(connection: Connection) -> list[str]:
    """Where shards may lie; refuses what is no cluster."""
    if not await has_citus(connection):
        raise Unavailable(
            "This database has no Citus: CREATE EXTENSION citus, on a server with"
            " shared_preload_libraries = 'citus', on the coordinator and on each data node.",
            code="NO_CITUS",
        )
    if not await connection.fetchval("SELECT citus_is_coordinator()"):
        raise Unavailable(
            "This is a data node. Give FAIRWAY_DATABASE_URL the coordinator's address.",
            code="NO_CITUS",
        )
    rows = await connection.fetch(_NODES)
    if not rows:
        raise Unavailable(
            "The cluster has no data nodes: SELECT citus_set_coordinator_host('…'), then"
            " SELECT citus_add_node('…', 5432) for each, on the coordinator.",
            code="NO_CITUS",
        )
    if away := [row["address"] for row in rows if not row["isactive"]]:
        raise Unavailable(f"Data nodes are not active: {', '.join(away)}.", code="NO_CITUS")
    return [row["address"] for row in rows]


async def _refuse_jobs(connection: Connection, missing: list[str]) -> None:
    """Rows that are there would be copied; with servers at work that loses some."""
    for table in missing:
        if table == "shards":
            continue
        if await connection.fetchval(f"SELECT EXISTS (SELECT FROM {table})"):
            raise Unavailable(
                f"The table {table} has rows already. Only a database in which nothing was accepted"
                " yet is distributed: found a new one, and move over by handing jobs in there.",
                code="NOT_EMPTY",
            )
    owner = await connection.fetchval("SELECT owner FROM shards WHERE expires_at > now() LIMIT 1")
    if owner:
        raise Unavailable(
            f"The server {owner} is at work on this database. Stop all servers first.",
            code="IN_USE",
        )


async def _distribute(connection: Connection, table: str, parts: int) -> None:
    beside = "none" if table == BY_SHARD[0] else BY_SHARD[0]
    count = f", shard_count := {parts}" if table == BY_SHARD[0] else ""
    try:
        await connection.execute(
            f"SELECT create_distributed_table('{table}', 'shard',"
            f" colocate_with := '{beside}'{count})"
        )
    except asyncpg.PostgresError as error:
        raise Unavailable(
            f"The table {table} could not be distributed: {error}. What was done stays; run the"
            " command again when that is mended.",
            code="NOT_DISTRIBUTED",
        ) from error


async def node_settings(connection: Connection) -> list[Record]:
    """Of each data node, whether it answers and keeps what it has committed."""
    rows: list[Record] = await connection.fetch(_NODE_SETTINGS)
    return rows


async def prepared_transactions_max(connection: Connection) -> int:
    text: str = await connection.fetchval("SHOW max_prepared_transactions")
    return int(text)
