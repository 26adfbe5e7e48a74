"""A node that hangs holds up its own reads, and nobody else's."""

from __future__ import annotations

import asyncio

from fairway.services.dispatch.node_reads import NodeReads

HUNG, WELL, AWAY = 1, 2, 3


async def test_a_read_that_hangs_goes_on_alone_and_the_others_come_again() -> None:
    nodes, over, read = NodeReads(), asyncio.Event(), list[int]()

    async def hang() -> None:
        await over.wait()
        read.append(HUNG)

    async def well() -> None:
        read.append(WELL)

    async def away() -> None:
        raise OSError("refused")

    errors = await nodes.run({HUNG: hang, WELL: well, AWAY: away})
    assert [str(error) for error in errors] == ["refused"]
    assert [nodes.is_busy(node) for node in (HUNG, WELL, AWAY)] == [True, False, False]
    assert await nodes.run({WELL: well}) == []
    assert read == [WELL, WELL]
    over.set()
    while nodes.is_busy(HUNG):  # noqa: ASYNC110  # its task ends by itself
        await asyncio.sleep(0)
    assert read == [WELL, WELL, HUNG]


async def test_who_stops_leaves_no_read_behind() -> None:
    nodes, begun, ended = NodeReads(), asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    running = asyncio.create_task(nodes.run({HUNG: hang}))
    await begun.wait()
    running.cancel()
    await asyncio.wait_for(ended.wait(), 5)
    await asyncio.wait({running})
    assert running.cancelled()
    assert not nodes.is_busy(HUNG)
