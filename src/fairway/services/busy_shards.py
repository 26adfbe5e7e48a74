"""Rounds of a loop over the shards that this server owns: only where there is something to do.

With many shards most have nothing at most times, and a statement for each would cost more than the
work itself. So one statement finds out where something is; then each of those has its round. With
one shard, or on a distributed store, every shard has its round as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairway.core.ids import ShardId
from fairway.store import shard_looks
from fairway.store.connections.database import Database
from fairway.store.shard_looks import Soon, Timed, Work


async def busy_shards(
    database: Database, work: Work, shards: Sequence[ShardId]
) -> Sequence[ShardId]:
    """Those of the shards that have this to do."""
    if database.by_shard or len(shards) < 2:
        return shards
    async with database.hot() as connection:
        return await shard_looks.shards_with(connection, work, shards)


async def due_shards(database: Database, work: Timed, shards: Sequence[ShardId]) -> Soon:
    """Those in which something is due, and when the next comes in the others."""
    if database.by_shard or len(shards) < 2:
        return Soon(list(shards), None)
    async with database.hot() as connection:
        return await shard_looks.shards_due(connection, work, shards)
