"""Reads of several nodes side by side, each at its own pace.

Whoever reads a node that hangs waits for as long as a read may take. Its reads go on by themselves,
one at a time, and whoever began them goes on with the others. It does not know what is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from fairway.runtime.telemetry import logger

log = logger("node_reads")

TOGETHER_SECONDS = 0.1  # for all of them; what takes longer is left to itself


class NodeReads:
    def __init__(self) -> None:
        self._under_way: dict[int, asyncio.Task[None]] = {}  # by node

    def is_busy(self, node: int) -> bool:
        return node in self._under_way

    async def run(
        self, reads: Mapping[int, Callable[[], Coroutine[Any, Any, None]]]
    ) -> list[BaseException]:
        """Of nodes that are not busy. Answers what went wrong so far; of what goes wrong later
        people read."""
        tasks = []
        for node, read in reads.items():
            task = self._under_way[node] = asyncio.create_task(read(), name=f"read:{node}")
            task.add_done_callback(partial(self._over, node))
            tasks.append(task)
        try:
            done, _ = await asyncio.wait(tasks, timeout=TOGETHER_SECONDS)
        except asyncio.CancelledError:
            self.cancel()
            raise
        return [error for task in done if (error := task.exception()) is not None]

    def cancel(self) -> None:
        """We stop: nobody wants what they would bring."""
        for task in self._under_way.values():
            task.cancel()

    def _over(self, node: int, task: asyncio.Task[None]) -> None:
        del self._under_way[node]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("streams cannot be read now", node=node, error=repr(error))
