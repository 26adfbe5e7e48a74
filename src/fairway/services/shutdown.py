"""The parts of a clean stop that may wait for others: each has a time, so that the next has a turn.

First another server goes on with the shards, while this one still listens and passes on what comes.
Then what is under way ends. What could not be written by then is not lost: it was acknowledged to
nobody, and workers report it to the next owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

from fairway.runtime.loops import pause
from fairway.runtime.telemetry import logger
from fairway.services.ownership.ownership import Ownership
from fairway.services.recording.lease_writer import LeaseWriter
from fairway.services.recording.recorder import Recorder
from fairway.store.connections.database import DISCONNECTED, Database

log = logger("stopping")

LOOK_SECONDS_MAX = 1.0  # who else is there
STAY_SECONDS_MAX = 6.0  # for one that has just come: it gets its first shards after half a term
STAY_LOOK_SECONDS = 0.05
HAND_OVER_SECONDS_MAX = 1.0
WRITE_SECONDS_MAX = 5.0
CLOSE_SECONDS_MAX = 2.0


async def hand_over(ownership: Ownership, leases: LeaseWriter, recorder: Recorder) -> None:
    """Let another server go on at once: it finds on disk all that workers run.

    What takes longer than a moment to write is not waited for: nobody is granted anything here.
    """
    await _stay_while_awaited(ownership)
    ownership.stop_granting()
    try:
        async with asyncio.timeout(HAND_OVER_SECONDS_MAX):
            await leases.write_all(ownership.owned())
            await asyncio.shield(recorder.drain_commits())  # given up here, it still goes on
    except DISCONNECTED as error:
        log.warning("not all is written, the next owner asks the workers", error=repr(error))
    try:
        async with asyncio.timeout(HAND_OVER_SECONDS_MAX):
            await ownership.resign()
    except DISCONNECTED as error:
        log.warning("not handed over yet", error=repr(error))


async def _stay_while_awaited(ownership: Ownership) -> None:
    """Who came a moment ago is known to no worker: it takes its first shards while we still grant.

    So a restart of one server after the other, each as soon as the last is ready, stops nobody.
    """
    with suppress(*DISCONNECTED):
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            await ownership.about_to_leave()
        async with asyncio.timeout(STAY_SECONDS_MAX):
            while ownership.is_awaited:
                await pause(STAY_LOOK_SECONDS)


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
