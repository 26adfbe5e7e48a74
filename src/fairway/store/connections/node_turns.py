"""How much of what all share one node of a distributed store may have at a time.

A node that hangs keeps whatever was asked of it: statements, and with them connections, for as long
as their time limits allow. So each has turns of its own, and never all that there is: what is asked
of the other nodes finds the rest. Who waits for a turn at one holds nothing that another needs.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from fairway.core.ids import ShardId
from fairway.store.connections.connection_cache import NoConnection, Use
from fairway.store.connections.placement import Placement


class NodeTurns:
    """So many at each node at once. What a node answers here, it answers: so it is not silent."""

    def __init__(self, placement: Placement, each: int) -> None:
        self._placement = placement
        self._turns: defaultdict[int, asyncio.Semaphore]
        self._turns = defaultdict(partial(asyncio.Semaphore, each))

    def of(self, shard: ShardId) -> asyncio.Semaphore:
        """The turns at the node where this shard lies now."""
        return self._turns[self._placement.node_of(shard)]

    def use(self, shard: ShardId, use: Use, seconds: float) -> UseAtNode:
        """The same, with a turn first."""
        heard = partial(self._placement.nodes.silent.answers, self._placement.node_of(shard))
        return UseAtNode(self.of(shard), use, seconds, heard)


class UseAtNode:
    """`async with`: a turn at the node, then a connection."""

    __slots__ = ("_heard", "_seconds", "_turn", "_use")

    def __init__(
        self,
        turn: asyncio.Semaphore,
        use: Use,
        seconds: float,
        heard: Callable[[float], None],
    ) -> None:
        """`heard` is told when a use went well: the node has answered by then."""
        self._turn = turn
        self._use = use
        self._seconds = seconds
        self._heard = heard

    async def __aenter__(self) -> Any:
        if self._turn.locked():
            await self._wait()
        else:
            await self._turn.acquire()  # at once
        try:
            return await self._use.__aenter__()
        except BaseException:
            self._turn.release()
            raise

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(self._seconds):
                await self._turn.acquire()
        except TimeoutError:
            raise NoConnection(f"a node of the store is busy for {self._seconds:g} s") from None
        self._use.begun(loop.time() - began)

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        try:
            await self._use.__aexit__(kind, error, traceback)
        finally:
            self._turn.release()
        if error is None:
            self._heard(asyncio.get_running_loop().time())
