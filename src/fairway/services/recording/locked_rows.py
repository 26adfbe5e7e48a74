"""Leases and ends whose rows somebody holds for long: written beside the lanes, which go on.

Such a row is nobody's fault: it is tried again until it is free, or another server's. Those that
came with it are written meanwhile. A lane waits for them only when very many are held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fairway.runtime.telemetry import logger

log = logger("locked_rows")

ROWS_MAX = 1_000  # with what they carry


class LockedRows:
    def __init__(self, kind: str) -> None:
        self._kind = kind  # what is to be written: leases, or ends
        self._rows = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, rows: int, write: Callable[[], Awaitable[object]]) -> None:
        """`write` brings so many to their rows, however long that takes."""
        log.warning("somebody holds rows of jobs: written later", kind=self._kind, rows=rows)
        if self._rows + rows > ROWS_MAX:
            await write()
            return
        self._rows += rows
        task = asyncio.create_task(self._write(rows, write), name=f"locked {self._kind}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        """Wait until all that were taken are decided; given up, it lets all of them go: a stop is
        not to wait for whoever holds the rows."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self, rows: int, write: Callable[[], Awaitable[object]]) -> None:
        try:
            await write()
        finally:
            self._rows -= rows
