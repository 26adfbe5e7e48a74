"""Which shards lie together on a distributed store, so that one statement may name them.

Citus keeps several of our shards in one of its own, and moves that as a whole: those stay together
wherever it goes. What it says is read once, when a process opens its connections. A group of shards
that another one was split from is not noticed: servers are started again after that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairway.core.ids import SHARDS_MAX, ShardId

#: For every connection to a distributed store. Its nodes plan each statement for the tables they
#: hold, so nothing is pinned; what a type is, the driver asks of tables that Citus otherwise hides
#: one by one, at a second and more for each connection; a node that is away is known soon; and the
#: triggers on jobs write to tables that lie beside them.
SETTINGS = {
    "jit": "off",
    "plan_cache_mode": "auto",
    "citus.override_table_visibility": "off",
    "citus.node_connection_timeout": "1000",
    "citus.enable_unsafe_triggers": "on",
}

CONNECT_SECONDS = 5.0

_HAS_CITUS = "SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"
_IS_DISTRIBUTED = """
SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition
               WHERE logicalrelid = to_regclass('shards') AND partmethod = 'h')
"""
_GROUPS = f"""
SELECT get_shard_id_for_distribution_column('shards', number) AS part, number AS shard
FROM generate_series(0, {SHARDS_MAX - 1}) AS number ORDER BY 1, 2
"""


class Placement(NamedTuple):
    """Groups of shards, each on one node as a whole; those that are not there yet, too: shards
    become more while servers run."""

    groups: Sequence[Sequence[ShardId]]
    group_of: Mapping[ShardId, int]  # → its place in `groups`


def placed(rows: Sequence[tuple[int, ShardId]]) -> Placement:
    """From pairs of a part of the store and a shard in it."""
    groups: dict[int, list[ShardId]] = {}
    for part, shard in rows:
        groups.setdefault(part, []).append(shard)
    numbered = enumerate(groups.values())
    return Placement(
        list(groups.values()), {shard: number for number, some in numbered for shard in some}
    )


async def has_citus(connection: Any) -> bool:
    """Whether the extension is there, whatever is distributed."""
    return bool(await connection.fetchval(_HAS_CITUS))


async def is_distributed(connection: Any) -> bool:
    return await has_citus(connection) and bool(await connection.fetchval(_IS_DISTRIBUTED))


async def placement_of(connection: Any) -> Placement | None:
    """None on a store that is one PostgreSQL."""
    if not await is_distributed(connection):
        return None
    rows = await connection.fetch(_GROUPS)
    return placed([(row["part"], row["shard"]) for row in rows])


async def read_placement(hosts: Any) -> Placement | None:
    """The same, on a connection of its own."""
    connection = await hosts.connect_any(
        timeout=CONNECT_SECONDS, server_settings={"application_name": "fairway-placement"}
    )
    try:
        return await placement_of(connection)
    finally:
        await connection.close()
