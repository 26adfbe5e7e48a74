"""Rounds of a loop over the shards that this server owns: only where there is something to do.

With many shards most have nothing at most times, and a statement for each would cost more than the
work itself. So one statement finds out where something is; then each of those has its round. With
one shard every shard has its round as it is. On a distributed store there is a statement for the
shards that lie together; those on a node that is away have no rounds, and hold up no others.

Loops with nothing to do rest until the same moments (`runtime/loops.py`): those that look then have
one statement together. Should that fail or take long, each looks by itself and hears its own error,
for a while: what one of them looks at must not make all others late, round after round.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from fairway.core.ids import ShardId
from fairway.runtime.telemetry import logger
from fairway.store import shard_looks
from fairway.store.connections.connection_cache import NoConnection, StoreAway
from fairway.store.connections.database import (
    DISCONNECTED,
    OWNER_SECONDS,
    Connection,
    Database,
)
from fairway.store.connections.error_classes import CONNECTION_FAILED
from fairway.store.connections.slow_calls import now
from fairway.store.shard_looks import AllLooks, Soon, Timed, Work

Found = TypeVar("Found")

LOOK_SECONDS = 2.0  # at one node of several: the others' shards wait for it meanwhile
TOGETHER_MIN = 3  # a statement with all looks costs as much as two or three of them
TOGETHER_SECONDS = 1.0  # somebody may hold a table that only one of them looks at
TOGETHER_SLOW_SECONDS = 0.25  # or it takes long to find out that nothing is there
ALONE_SECONDS = 30.0  # after either; whether it is over costs all of them a wait again

log = logger("looks")


async def busy_shards(
    database: Database, work: Work, shards: Sequence[ShardId]
) -> Sequence[ShardId]:
    """Those of the shards that have this to do."""
    if database.by_shard or len(shards) < 2:
        return shards

    if (seen := await _looked_together(database, shards)) is not None:
        return seen.shards_with(work, shards)

    async def look(connection: Connection, some: Sequence[ShardId]) -> list[ShardId]:
        return await shard_looks.shards_with(connection, work, some)

    return [shard async for found in _each(database, shards, look) for shard in found]


async def due_shards(database: Database, work: Timed, shards: Sequence[ShardId]) -> Soon:
    """Those in which something is due, and when the next comes in the others."""
    if database.by_shard or len(shards) < 2:
        return Soon(list(shards), None)

    if (seen := await _looked_together(database, shards)) is not None:
        return seen.shards_due(work, shards)

    async def look(connection: Connection, some: Sequence[ShardId]) -> Soon:
        return await shard_looks.shards_due(connection, work, some)

    found = [one async for one in _each(database, shards, look)]
    waits = [one.seconds for one in found if one.seconds is not None]
    return Soon([shard for one in found for shard in one.due], min(waits, default=None))


class _Asked(NamedTuple):
    """Who wants to look in this turn of the event loop, and where."""

    shards: set[ShardId]
    waiting: list[asyncio.Future[AllLooks | None]]


#: By database; gone again before the next turn.
_asked: WeakKeyDictionary[Database, _Asked] = WeakKeyDictionary()
_looking: set[asyncio.Task[None]] = set()
#: Until when everybody looks alone.
_alone_until: WeakKeyDictionary[Database, float] = WeakKeyDictionary()


async def _looked_together(database: Database, shards: Sequence[ShardId]) -> AllLooks | None:
    """What there is, if others look in this turn, too; None: whoever asks is to look alone."""
    if database.placement is not None or now() < _alone_until.get(database, 0.0):
        return None
    asked = _asked.get(database)
    if asked is None:
        asked = _asked[database] = _Asked(set(), [])
        task = asyncio.create_task(_look_together(database, asked), name="looks")
        _looking.add(task)
        task.add_done_callback(_looking.discard)
    asked.shards.update(shards)
    waiting: asyncio.Future[AllLooks | None] = asyncio.get_running_loop().create_future()
    asked.waiting.append(waiting)
    return await waiting


async def _look_together(database: Database, asked: _Asked) -> None:
    del _asked[database]  # who comes from now on looks at what is there then
    seen: AllLooks | None = None
    try:
        if len(asked.waiting) >= TOGETHER_MIN:
            async with database.hot(TOGETHER_SECONDS) as connection:
                began = now()
                seen = await shard_looks.look_at_all(connection, asked.shards)
            if now() - began > TOGETHER_SLOW_SECONDS:
                _look_alone(database, "slow")
    except NoConnection as error:  # no table was asked, and one look wants fewer than ten
        log.debug("not looked together", error=repr(error))
    except StoreAway as error:
        _look_alone(database, repr(error))
    except CONNECTION_FAILED:  # told by whoever watches the store
        _alone_until[database] = now() + ALONE_SECONDS
    except Exception as error:
        _look_alone(database, repr(error))
    finally:
        for waiting in asked.waiting:
            if not waiting.done():
                waiting.set_result(seen)


def _look_alone(database: Database, why: str) -> None:
    _alone_until[database] = now() + ALONE_SECONDS
    log.info("loops look at shards one by one for now", why=why, seconds=ALONE_SECONDS)


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
