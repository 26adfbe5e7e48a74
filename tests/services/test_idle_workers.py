"""Five hundred idle workers of the long pool cost the database next to nothing."""

from __future__ import annotations

import asyncio
import time

from tests.services.platform_room import QUICK, Hand, owner_on, until

from fairway.runtime.settings import Settings
from fairway.services.exchange import WAIT_MAX_SECONDS
from fairway.services.platform import Platform
from fairway.store.database import Connection

WORKERS = 500
SECONDS = 6.0
WRITES = """
    SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables
"""


async def written(connection: Connection) -> int:
    await connection.execute("SELECT pg_stat_force_next_flush()")
    return int(await connection.fetchval(WRITES))


async def are_counted(connection: Connection) -> bool:
    """A connection that idles tells what it wrote up to ten seconds late."""
    return await written(connection) >= WORKERS


async def test_500_idle_long_workers_write_less_than_50_rows_a_second(database_url: str) -> None:
    async with owner_on(database_url, Settings(data_dir=QUICK.data_dir)) as platform:
        hands = [Hand(platform, long=1) for _ in range(WORKERS)]
        for hand in hands:
            news = await hand.say(hello=True)
            assert news is not None
            assert news.beat_ms == 30_000
        await asyncio.sleep(2.5)  # every session is written once
        async with platform.database.calm() as connection:
            await until(lambda: are_counted(connection), 20)
            before, began = await written(connection), time.monotonic()
            await beat(hands)
            await asyncio.sleep(1.5)
            rows = await written(connection) - before
        rate = rows / (time.monotonic() - began)
        assert 1 <= rate < 50, f"{rate:.0f} rows a second"
        assert live(platform) == WORKERS


async def beat(hands: list[Hand]) -> None:
    """As their calls come when each is held for as long as the server holds one."""
    ends = time.monotonic() + SECONDS
    pause = WAIT_MAX_SECONDS / len(hands)
    for hand in hands:
        if time.monotonic() >= ends:
            return
        await hand.say()
        await asyncio.sleep(pause)


def live(platform: Platform) -> int:
    return sum(session.greeted for session in platform.dispatcher.sessions.values())
