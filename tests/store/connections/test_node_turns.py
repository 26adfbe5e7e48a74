"""A node that hangs holds its own turns, and leaves the connections of others alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairway.core.ids import ShardId
from fairway.core.ownership.silent_nodes import Miss
from fairway.store.connections.connection_cache import NoConnection
from fairway.store.connections.database import Database
from fairway.store.connections.node_turns import NodeTurns, UseAtNode
from fairway.store.connections.placement import placed

HERE, BESIDE, THERE = map(ShardId, range(3))


async def test_what_hangs_at_one_node_holds_up_nobody_at_another(database: Database) -> None:
    placement = placed([(7, HERE), (8, BESIDE), (9, THERE)])
    placement.nodes.learn({0: 1, 1: 1, 2: 2}, 0.0)
    turns = NodeTurns(placement, 2)

    def use(shard: ShardId, seconds: float = 5.0) -> UseAtNode:
        hot: Any = database.hot(seconds)
        return turns.use(shard, hot, seconds)

    over = asyncio.Event()

    async def hang(shard: ShardId) -> None:
        async with use(shard):
            await over.wait()

    hanging = [asyncio.create_task(hang(shard)) for shard in (HERE, BESIDE)]
    await asyncio.sleep(0)
    with pytest.raises(NoConnection):  # nothing was asked, so nothing was kept
        async with use(BESIDE, 0.05):
            pytest.fail("a node has no third turn")
    async with use(THERE, 0.5) as connection:
        assert await connection.fetchval("SELECT 1") == 1
    now, silent = asyncio.get_running_loop().time(), placement.nodes.silent
    for group in (0, 2):  # asked a while ago, and only the second has answered somebody since
        silent.missed(group, now - 1.0, now, miss=Miss.NOTHING)
    assert [silent.is_silent(group) for group in (0, 2)] == [True, False]
    over.set()
    await asyncio.gather(*hanging)
    assert not silent.is_silent(0), "it answered"
    async with use(BESIDE, 0.5) as connection:
        assert await connection.fetchval("SELECT 1") == 1
    placement.nodes.learn({1: 2}, 0.0)  # it was moved
    assert turns.of(BESIDE) is turns.of(THERE) is not turns.of(HERE)
