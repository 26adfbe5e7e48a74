"""The parts of a clean stop that may wait for others: each has a time, so that the next has a turn.

What could not be written by then is not lost: it was acknowledged to nobody, and workers report it
to the next owner. Handing over comes after this, and must not wait for storage or for a lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from fairway.runtime.telemetry import logger
from fairway.store.database import DISCONNECTED, Database

log = logger("stopping")

WRITE_SECONDS_MAX = 5.0
CLOSE_SECONDS_MAX = 2.0


async def write_the_rest(*drains: Awaitable[None]) -> None:
    """Wait for what is on its way to disk, all at once; what takes too long is given up."""
    try:
        async with asyncio.timeout(WRITE_SECONDS_MAX):
            await asyncio.gather(*drains)
    except TimeoutError:
        log.warning("not all was written, workers report the rest to the next owner")


async def close(database: Database) -> None:
    """Let uses under way end; one that still waits for a lock is cut."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS_MAX):
            await database.close()
    except DISCONNECTED:
        database.terminate()
