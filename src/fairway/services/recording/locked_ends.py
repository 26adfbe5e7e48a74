"""Ends of runs whose rows somebody holds for long: written beside the lanes, which go on.

Such a row is nobody's fault: its end is tried again until it is free, or another server's. Those
that came with it are written meanwhile. A lane waits for them only when very many are held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fairway.runtime.telemetry import logger

log = logger("locked_ends")

ENDS_MAX = 1_000  # with what they carry


class LockedEnds:
    def __init__(self) -> None:
        self._ends = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, ends: int, write: Callable[[], Awaitable[object]]) -> None:
        """`write` brings so many to their rows, however long that takes."""
        log.warning("somebody holds rows of ended jobs: they are written later", ends=ends)
        if self._ends + ends > ENDS_MAX:
            await write()
            return
        self._ends += ends
        task = asyncio.create_task(self._write(ends, write), name="locked ends")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait until all that were taken are decided; given up, it lets all of them go: a stop is
        not to wait for whoever holds the rows."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self, ends: int, write: Callable[[], Awaitable[object]]) -> None:
        try:
            await write()
        finally:
            self._ends -= ends
