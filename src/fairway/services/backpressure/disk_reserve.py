"""Looks at the room on the disk of the embedded PostgreSQL, so that the last of it is for outcomes.

Of a database elsewhere nobody here knows the disk: there it is for its own alarms to say.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from fairway.core.backpressure.disk_reserve import is_low
from fairway.core.errors import Unavailable
from fairway.runtime.telemetry import logger

log = logger("disk")

REST_SECONDS = 1.0


class DiskFull(Unavailable):
    """No more jobs for now: somebody makes room, or old ones are dropped, and both take a while."""

    code = "DISK_FULL"
    retry_after_seconds: float = 30


class DiskReserve:
    def __init__(self, folder: Path | None, reserve_bytes: int) -> None:
        """`folder` is None when what is accepted is kept elsewhere."""
        self._folder = folder
        self._reserve_bytes = reserve_bytes
        self._is_low = False

    async def run_once(self, now_us: int) -> float:
        if self._folder is not None:
            free_bytes = await asyncio.to_thread(_free_bytes, self._folder)
            if free_bytes is not None:
                self._look(free_bytes)
        return REST_SECONDS

    def _look(self, free_bytes: int) -> None:
        was_low = self._is_low
        self._is_low = is_low(free_bytes, self._reserve_bytes, was_low=was_low)
        if self._is_low and not was_low:
            log.error("disk nearly full, no more jobs are accepted", free_bytes=free_bytes)
        elif was_low and not self._is_low:
            log.warning("there is room on the disk again", free_bytes=free_bytes)

    def is_low(self) -> bool:
        """Nothing more comes in: the rest of the room is for what was accepted."""
        return self._is_low

    def check(self) -> None:
        """Before a job is let in, or what is to be one."""
        if self._is_low:
            raise DiskFull(
                "The disk of the database is nearly full. What was accepted runs on; new jobs are"
                " accepted when there is room again."
            )

    def check_object(self, what: str) -> None:
        """Before something large is written to the same disk for a job that is there already."""
        if self._is_low:
            raise DiskFull(
                f"The disk of the database is nearly full: no {what} is kept until there is room"
                " again."
            )


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
