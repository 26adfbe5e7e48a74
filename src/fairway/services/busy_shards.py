"""Rounds of a loop over the shards that this server owns: only where there is something to do.

With many shards most have nothing at most times, and a statement for each would cost more than the
work itself. So one statement finds out where something is; then each of those has its round. With
one shard every shard has its round as it is. On a distributed store there is a statement for the
shards that lie together; those on a node that is away have no rounds, and hold up no others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from fairway.core.ids import ShardId
from fairway.store import shard_looks
from fairway.store.connections.database import (
    DISCONNECTED,
    OWNER_SECONDS,
    Connection,
    Database,
)
from fairway.store.shard_looks import Soon, Timed, Work

Found = TypeVar("Found")

LOOK_SECONDS = 2.0  # at one node of several: the others' shards wait for it meanwhile


async def busy_shards(
    database: Database, work: Work, shards: Sequence[ShardId]
) -> Sequence[ShardId]:
    """Those of the shards that have this to do."""
    if database.by_shard or len(shards) < 2:
        return shards

    async def look(connection: Connection, some: Sequence[ShardId]) -> list[ShardId]:
        return await shard_looks.shards_with(connection, work, some)

    return [shard async for found in _each(database, shards, look) for shard in found]


async def due_shards(database: Database, work: Timed, shards: Sequence[ShardId]) -> Soon:
    """Those in which something is due, and when the next comes in the others."""
    if database.by_shard or len(shards) < 2:
        return Soon(list(shards), None)

    async def look(connection: Connection, some: Sequence[ShardId]) -> Soon:
        return await shard_looks.shards_due(connection, work, some)

    found = [one async for one in _each(database, shards, look)]
    waits = [one.seconds for one in found if one.seconds is not None]
    return Soon([shard for one in found for shard in one.due], min(waits, default=None))


async def _each(
    database: Database,
    shards: Sequence[ShardId],
    look: Callable[[Connection, Sequence[ShardId]], Awaitable[Found]],
) -> AsyncIterator[Found]:
    """What is found, group by group; a store of which nothing answers is an error as ever."""
    groups = database.batches_of(shards)
    asked = [some for some in groups if not database.is_silent(some[0])] or groups
    seconds = OWNER_SECONDS if len(groups) == 1 else LOOK_SECONDS
    away: list[Exception] = []
    for some in asked:
        try:
            async with database.hot(seconds, some[0]) as connection:
                found = await look(connection, some)
        except DISCONNECTED as error:
            away.append(error)
            if len(away) == len(asked):
                raise
            continue
        yield found
