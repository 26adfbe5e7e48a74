"""The watch: silence is soon known, a link that is only slow to connect is no silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs
from tests.services.gate import gate_to
from tests.services.platform_room import kill, open_pair, owns_all, platform_on, until

from fairway.services import store_watch
from fairway.services.store_watch import StoreWatch
from fairway.store.connections.database import CONNECT_SECONDS, Database

OUTER_SECONDS = 20


@asynccontextmanager
async def opened(dsn: str) -> AsyncIterator[Database]:
    database = await Database.open(dsn)
    try:
        yield database
    finally:
        database.terminate()


async def test_a_link_that_connects_slowly_is_not_taken_for_silence(database_url: str) -> None:
    async with gate_to(database_url) as gate, opened(gate.dsn) as database:
        gate.connect_seconds = store_watch.ANSWER_SECONDS + 0.3
        watch = StoreWatch(database, on_back=lambda: None, look_now=lambda: None)
        for _ in range(store_watch.MISSES_MAX):
            await watch.run_once(0)
        assert not database.is_away


async def test_a_store_that_was_silent_is_back_however_slowly_it_connects(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_watch, "ANSWER_SECONDS", 0.2)
    async with gate_to(database_url) as gate, opened(gate.dsn) as database:
        came_back = asyncio.Event()
        watch = StoreWatch(database, on_back=came_back.set, look_now=lambda: None)
        await watch.run_once(0)
        gate.silence()
        async with asyncio.timeout(OUTER_SECONDS):
            while not database.is_away:
                await watch.run_once(0)
        gate.connect_seconds = 0.6  # from now on, for new ones
        gate.speak()
        async with asyncio.timeout(OUTER_SECONDS):
            while database.is_away:
                await watch.run_once(0)
        assert came_back.is_set()
        async with database.people() as connection:
            assert await connection.fetchval("SELECT 1") == 1


def test_a_connect_has_ever_more_time_and_never_more_than_its_own() -> None:
    times = [store_watch.connect_seconds(misses) for misses in range(1, 2000)]
    assert times == sorted(times)
    assert times[-1] == CONNECT_SECONDS == store_watch.connect_seconds(0)
    assert times[0] < 2.0, "silence must be known soon"


async def test_a_store_that_is_gone_is_one_line_of_all_loops_and_one_when_it_is_back(
    database_url: str,
) -> None:
    """Each loop had told of it, and the pruner for each shard, every five seconds."""
    async with gate_to(database_url) as gate, platform_on(gate.dsn) as platform:
        loops = list(platform.loops.values())
        await until(lambda: owns_all(platform))
        with capture_logs() as lines:
            await gate.close()
            await until(lambda: sum(loop.failures_in_row > 2 for loop in loops) > 10)
            platform.loops["pruner"].wake()
            await until(lambda: platform.loops["pruner"].failures_in_row > 1)
            assert platform.database.hosts.is_unreachable
            await gate.open()
            await until(lambda: not any(loop.failures_in_row for loop in loops))
        told = [line for line in lines if line["log_level"] != "debug"]
        away, back = (line for line in told if line["event"].startswith("the store "))
        assert (away["event"], away["log_level"]) == ("the store does not answer", "error")
        assert away["database"] == gate.dsn.partition("@")[2].partition("?")[0]
        assert (back["event"], back["log_level"]) == ("the store answers again", "info")
        assert not {line["event"] for line in told} & {"loop failed", "loop recovered"}
        assert not [line for line in told if line["event"].startswith("retention step")]


async def test_a_server_that_refuses_everything_lets_others_own_its_shards(
    database_url: str,
) -> None:
    """Its own way to the shards still works; it asks the store for nothing else."""
    first, second = await open_pair(database_url)
    await first.loops["store watch"].stop()
    await first.database.away()
    await until(lambda: owns_all(second))
    first.database.back()
    first.loops["ownership"].wake()
    await until(lambda: first.dispatcher.shards.terms == {})
    await kill(first)
    await second.stop()
