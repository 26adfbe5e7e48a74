"""PostgreSQL stopped, read-only, full or silent for half a minute, under load: `-m slow`.

Callers hear 503 with `Retry-After` within a second and nothing hangs; afterwards all is as before,
without a restart of ours. Each fault has a PostgreSQL of its own, on a small disk of its own.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.acceptance.checker import SUCCEEDED
from tests.acceptance.house import House
from tests.acceptance.load import Load
from tests.api.cable import Cable, cable_to
from tests.postgres import connected, open_room

from fairway.store.postgres.embedded import EmbeddedPostgres
from fairway.store.schema.migrate import migrate_at

FAULT_SECONDS = 30.0
BEFORE_SECONDS = 15.0
AFTER_SECONDS = 30.0
DISK_MB = 900
RATE = 80.0


class Store:
    """A PostgreSQL on a disk of its own, and everything that can go wrong with it."""

    def __init__(self, room: Path, postgres: EmbeddedPostgres, dsn: str, line: Cable) -> None:
        self._room = room
        self._postgres = postgres
        self.dsn = dsn  # around the cable
        self.line = line

    async def stopped(self) -> None:
        await self._postgres.stop()

    async def started(self) -> None:
        await self._postgres.start(lambda message: None)

    async def read_only(self) -> None:
        await self._set("ALTER SYSTEM SET default_transaction_read_only = on")

    async def writable(self) -> None:
        await self._set("SET default_transaction_read_only = off", "ALTER SYSTEM RESET ALL")

    async def _set(self, *statements: str) -> None:
        async with connected(self.dsn) as connection:
            for statement in (*statements, "SELECT pg_reload_conf()"):
                await connection.execute(statement)

    async def full(self) -> None:
        """As other programs fill a disk: to the last byte."""
        ballast = f"of={self._room}/ballast"
        await asyncio.to_thread(_done, "dd", "if=/dev/zero", ballast, "bs=64k", "status=none")

    async def emptied(self) -> None:
        """What an operator does; a PostgreSQL that gave up is started again, as `up` does."""
        (self._room / "ballast").unlink()
        if self._postgres.pid is None:
            await self._postgres.start(lambda message: None)

    async def silent(self) -> None:
        self.line.silence()

    async def heard(self) -> None:
        self.line.mend()


def _done(*command: str) -> bool:
    return not subprocess.run(command, check=False, capture_output=True).returncode


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    with open_room() as room:
        disk = ("mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=755", "tmpfs", str(room))
        if not _done(*disk):
            pytest.skip("needs a disk of its own, so the right to mount one")
        postgres = EmbeddedPostgres(room / "data")
        try:
            dsn = await postgres.start(lambda message: None)
            await migrate_at(dsn)
            with cable_to(dsn) as line:
                yield Store(room, postgres, dsn, line)
        finally:
            await postgres.stop()
            assert _done("umount", "-l", str(room))


@asynccontextmanager
async def opened(store: Store, room: Path) -> AsyncIterator[House]:
    house = House(room, store.line.dsn)
    house.settings = {  # all times as they are by default
        name: value for name, value in house.settings.items() if not name.endswith("_SECONDS")
    }
    house.book.dsn = store.dsn
    await house.furnish()
    try:
        await house.open(servers=1, workers=2)
        yield house
    finally:
        await house.close()


Fault = Callable[[Store], Awaitable[None]]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [
        ("stopped", Store.stopped, Store.started),
        ("read-only", Store.read_only, Store.writable),
        ("full", Store.full, Store.emptied),
        ("half-open", Store.silent, Store.heard),
    ],
)
async def test_store_trouble_under_load(
    store: Store, room: Path, figures: dict[str, str], name: str, begin: Fault, end: Fault
) -> None:
    async with opened(store, room) as house:
        async with house.load(rate=RATE, clients=16, run_seconds=lambda dice: 0.0) as load:
            load.call_seconds_max = 30.0
            await load.has_accepted(100, within_seconds=60)
            await asyncio.sleep(BEFORE_SECONDS)
            began = time.time()
            await begin(store)
            await asyncio.sleep(FAULT_SECONDS)
            over = time.time()
            await end(store)
            ended = time.time()
            await asyncio.sleep(AFTER_SECONDS)
        verdict = await house.check(load.accepted, drain_seconds=60)
        ends = [one.at for one in await house.book.changes() if one.after == SUCCEEDED]
        pids = [program.alive for program in house.programs]
    slowest, refused = _refusals(load, began, over)
    before = _rate(ends, began - BEFORE_SECONDS, began)
    after = _rate(ends, ended + AFTER_SECONDS - 10, ended + AFTER_SECONDS)
    back = min(at for at in load.accepted_at if at > over) - over
    figures[f"store {name} for {FAULT_SECONDS:.0f} s"] = said = (
        f"{refused} refused, p50 {slowest[len(slowest) // 2]:.2f}, p99"
        f" {slowest[len(slowest) * 99 // 100]:.2f}, slowest {slowest[-1]:.2f} s; first accepted"
        f" {back:.1f} s after its end; ends/s {before:.0f} before, {after:.0f} after"
        f" ({after / before:.2f}); {verdict.jobs} jobs, 0 lost, {verdict.ran_twice} ran twice;"
        f" {dict(load.answers)}"
    )
    assert all(pids), "something of ours ended"
    assert set(load.answers) <= {"202", "503"}, load.answers
    assert load.without_retry_after == 0
    assert slowest[len(slowest) * 99 // 100] <= 1.5, said  # one, and a busy machine's moment
    assert after >= 0.9 * before, said


def _refusals(load: Load, began: float, over: float) -> tuple[list[float], int]:
    """How long calls took that were not accepted while the fault lasted, the quickest first."""
    found = sorted(
        call.seconds for call in load.calls if began <= call.at <= over and call.answer != "202"
    )
    assert found, "nobody noticed: the test proved nothing"
    return found, len(found)


def _rate(ends: list[float], since: float, until: float) -> float:
    return sum(since <= at < until for at in ends) / (until - since)
