"""Five hundred idle workers of the long pool cost the database next to nothing."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple

import pytest
from tests.services.platform_room import QUICK, Hand, owner_on, until

from fairway.runtime.settings import Settings
from fairway.services.platform import Platform
from fairway.services.workers.exchange import WAIT_MAX_SECONDS
from fairway.store.connections.database import Connection

WORKERS = 500
BEATS = 150  # in six seconds, on a machine that keeps up
ROWS_PER_SECOND_MAX = 50
WRITES = """
    SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::int AS all,
           coalesce(sum(n_tup_ins) FILTER (WHERE relname = 'sessions'), 0)::int AS sessions
    FROM pg_stat_user_tables
"""


class Written(NamedTuple):
    """Rows since the database was made, as far as connections have told."""

    rows: int
    sessions: int


async def written(connection: Connection) -> Written:
    await connection.execute("SELECT pg_stat_force_next_flush()")
    return Written(*await connection.fetchrow(WRITES))


@pytest.mark.slow
async def test_500_idle_long_workers_write_less_than_50_rows_a_second(database_url: str) -> None:
    async with owner_on(database_url, Settings(data_dir=QUICK.data_dir)) as platform:
        async with platform.database.background() as connection:
            first = await written(connection)  # the database may have served another test
        hands = [Hand(platform, long=1) for _ in range(WORKERS)]
        for hand in hands:
            news = await hand.say(hello=True)
            assert news is not None
            assert news.heartbeat_ms == 30_000
        async with platform.database.background() as connection:

            async def are_counted() -> bool:
                return (await written(connection)).sessions - first.sessions >= WORKERS

            # Every session is written once. A connection that idles tells of it ten seconds late,
            # and what it tells only later would count as written by those who beat.
            await until(are_counted, 60)
            before, began = await written(connection), time.monotonic()
            await beat(hands[:BEATS])
            await asyncio.sleep(1.5)
            rows = (await written(connection)).rows - before.rows
        rate = rows / (time.monotonic() - began)
        assert 0 < rate < ROWS_PER_SECOND_MAX, f"{rate:.0f} rows a second"
        assert rows < BEATS * ROWS_PER_SECOND_MAX * WAIT_MAX_SECONDS / WORKERS, f"{rows} rows"
        assert live(platform) == WORKERS


async def beat(hands: list[Hand]) -> None:
    """As their calls come when each is held for as long as the server holds one."""
    for hand in hands:
        await hand.say()
        await asyncio.sleep(WAIT_MAX_SECONDS / WORKERS)


def live(platform: Platform) -> int:
    return sum(session.greeted for session in platform.dispatcher.sessions.values())
