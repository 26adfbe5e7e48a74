"""An owner that freezes inside a transaction holds a lock that nobody can ask it to give back."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
from tests.postgres import connected
from tests.services.platform_room import Hand, add_tenant, owns_all, platform_on, submit, until

from fairway.store.connections.database import Connection

ROOT = Path(__file__).parents[2]
BOUND_SECONDS = 10.0  # three for the transaction, a term, and some for a machine with other work


@asynccontextmanager
async def owner_in_transactions(dsn: str) -> AsyncIterator[Process]:
    """Another server, in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.services.frozen_owner", dsn, cwd=ROOT, stdout=PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            while b"holding" not in (line := await process.stdout.readline()):
                assert line, "it ended before it held anything"
        yield process
    finally:
        process.kill()
        await process.wait()


async def freeze_inside_a_transaction(process: Process, look: Connection) -> None:
    while True:
        process.send_signal(signal.SIGSTOP)
        if await is_held(look):
            return
        process.send_signal(signal.SIGCONT)
        await asyncio.sleep(0.05)


async def is_held(look: Connection) -> bool:
    try:
        await look.fetch("SELECT FROM shards FOR UPDATE NOWAIT")
    except asyncpg.LockNotAvailableError:
        return True
    return False


async def test_a_frozen_owners_transaction_does_not_outlast_it_for_long(database_url: str) -> None:
    async with (
        owner_in_transactions(database_url) as frozen,
        connected(database_url) as look,
        platform_on(database_url) as other,
    ):
        await until(lambda: other.ownership.has_peers)
        await freeze_inside_a_transaction(frozen, look)
        began = time.monotonic()
        await until(lambda: owns_all(other), 3 * BOUND_SECONDS)
        assert time.monotonic() - began < BOUND_SECONDS
        assert frozen.returncode is None
        (job,) = await submit(other, await add_tenant(other))
        (lease,) = await Hand(other).take()
        assert lease.job.id == job
