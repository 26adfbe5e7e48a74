"""Which shards lie together on a distributed store, so that one statement may name them.

Citus keeps several of our shards in one of its own, and moves that as a whole: those stay together
wherever it goes. What it says is read once, when a process opens its connections. A group of shards
that another one was split from is not noticed: servers are started again after that. On which node
a group lies is read again now and then, by whoever looks at all of them anyway (`leadership.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairway.core.ids import SHARDS_MAX, ShardId
from fairway.core.ownership.silent_nodes import SilentNodes

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
_NODES = """
SELECT shardid AS part, groupid AS node
FROM pg_catalog.pg_dist_placement JOIN pg_catalog.pg_dist_shard USING (shardid)
WHERE logicalrelid = to_regclass('shards')
"""
NODES_READ_SECONDS = 10.0  # apart


class Nodes:
    """On which node each group lies, as it was last read, and which nodes do not answer."""

    def __init__(self) -> None:
        self.of_group: dict[int, int] = {}
        self.silent = SilentNodes(self.of_group)
        self._read_at = -NODES_READ_SECONDS

    def is_old(self, now: float) -> bool:
        return now - self._read_at >= NODES_READ_SECONDS

    def learn(self, of_group: Mapping[int, int], now: float) -> None:
        self._read_at = now
        self.of_group.update(of_group)


class Placement(NamedTuple):
    """Groups of shards, each on one node as a whole; those that are not there yet, too: shards
    become more while servers run."""

    groups: Sequence[Sequence[ShardId]]
    group_of: Mapping[ShardId, int]  # → its place in `groups`
    parts: Sequence[int]  # of the store's own, beside `groups`
    nodes: Nodes

    def node_of(self, shard: ShardId) -> int:
        """Where it lies; one of its own where that is not known."""
        group = self.group_of.get(shard, -1 - shard)
        return self.nodes.of_group.get(group, -1 - group)

    def is_silent(self, shard: ShardId) -> bool:
        """Whether its node did not answer when it was last asked about terms."""
        return self.nodes.silent.is_silent(self.group_of.get(shard, -1 - shard))

    async def look_at_nodes(self, connection: Any, now: float) -> None:
        """Groups are moved while servers run."""
        if self.nodes.is_old(now):
            node_of = {row["part"]: row["node"] for row in await connection.fetch(_NODES)}
            found = {n: node_of[part] for n, part in enumerate(self.parts) if part in node_of}
            self.nodes.learn(found, now)


def placed(rows: Sequence[tuple[int, ShardId]]) -> Placement:
    """From pairs of a part of the store and a shard in it."""
    groups: dict[int, list[ShardId]] = {}
    for part, shard in rows:
        groups.setdefault(part, []).append(shard)
    numbered = enumerate(groups.values())
    group_of = {shard: number for number, some in numbered for shard in some}
    return Placement(list(groups.values()), group_of, list(groups), Nodes())


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
    found = placed([(row["part"], row["shard"]) for row in rows])
    await found.look_at_nodes(connection, asyncio.get_running_loop().time())
    return found


async def read_placement(hosts: Any) -> Placement | None:
    """The same, on a connection of its own."""
    connection = await hosts.connect_any(
        timeout=CONNECT_SECONDS, server_settings={"application_name": "fairway-placement"}
    )
    try:
        return await placement_of(connection)
    finally:
        await connection.close()
