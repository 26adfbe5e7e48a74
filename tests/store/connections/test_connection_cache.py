"""Uses of connections: each has a deadline, none lies inside another, none leaves work behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from tests.postgres import connected

from fairway.core.server_processes import WHOLE
from fairway.store.connections import connection_cache
from fairway.store.connections.connection_cache import Deadline, StoreAway
from fairway.store.connections.database import DISCONNECTED, Connection, Database

LONG_SECONDS = 20  # far beyond any deadline here


@pytest.fixture
async def hasty(database_url: str) -> AsyncIterator[Database]:
    """People wait for so short a time that a test can."""
    opened = await Database.open(database_url, wait_seconds=0.3, sizes=WHOLE._replace(people=2))
    yield opened
    opened.terminate()


async def dawdle(database: Database) -> None:
    async with database.people() as connection:
        await connection.execute(f"SELECT pg_sleep({LONG_SECONDS})")


async def test_a_use_that_is_over_time_is_cut(hasty: Database) -> None:
    began = time.monotonic()
    with pytest.raises(StoreAway):
        await dawdle(hasty)
    assert time.monotonic() - began < LONG_SECONDS / 2
    async with hasty.people() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_who_waits_for_a_connection_waits_so_long_and_no_longer(hasty: Database) -> None:
    holding = [hasty.people(LONG_SECONDS) for _ in range(2)]
    both_hold, may_go = asyncio.Barrier(3), asyncio.Event()

    async def hold(number: int) -> None:
        async with holding[number]:
            await both_hold.wait()
            await may_go.wait()

    async with asyncio.timeout(LONG_SECONDS / 2), asyncio.TaskGroup() as group:
        for number in range(2):
            group.create_task(hold(number))
        await both_hold.wait()
        with pytest.raises(StoreAway):
            async with hasty.people():
                pass
        async with hasty.background() as connection:  # upkeep does not wait behind people
            assert await connection.fetchval("SELECT 1") == 1
        may_go.set()


async def test_what_nobody_waits_for_any_more_ends_in_the_store_too(
    hasty: Database, other_connection: Connection
) -> None:
    with pytest.raises(StoreAway):
        await dawdle(hasty)
    count = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()"
    )
    async with asyncio.timeout(LONG_SECONDS / 2):
        while await other_connection.fetchval(count):  # noqa: ASYNC110  # the store's own fact
            await asyncio.sleep(0.05)


async def test_a_store_that_is_away_is_known_to_be(hasty: Database) -> None:
    waiting = asyncio.create_task(dawdle_in_upkeep(hasty))
    await asyncio.sleep(0.1)
    await hasty.away()
    with pytest.raises(DISCONNECTED):
        async with asyncio.timeout(LONG_SECONDS / 2):
            await waiting
    for use in (hasty.hot, hasty.people, hasty.background):
        with pytest.raises(StoreAway):
            async with use():
                pass
    hasty.back()
    for use in (hasty.hot, hasty.people, hasty.background):
        async with use() as connection:
            assert await connection.fetchval("SELECT 1") == 1


async def dawdle_in_upkeep(database: Database) -> None:
    async with database.background() as connection:
        await connection.execute(f"SELECT pg_sleep({LONG_SECONDS})")


async def test_a_connection_of_ones_own_is_cut_as_well(database: Database) -> None:
    leader = await database.dedicated()
    with pytest.raises(StoreAway):
        async with Deadline(leader, 0.1):
            await leader.execute(f"SELECT pg_sleep({LONG_SECONDS})")
    assert leader.is_closed()


async def test_time_in_which_we_stood_still_is_not_the_stores(hasty: Database) -> None:
    async with hasty.people() as connection:
        asking = asyncio.create_task(connection.fetchval("SELECT 1 FROM pg_sleep(0.05)"))
        await asyncio.sleep(0)
        time.sleep(0.8)  # noqa: ASYNC251  # as a machine does that others use
        assert await asking == 1
    with pytest.raises(StoreAway):
        await dawdle(hasty)
    leader = await hasty.dedicated()
    async with Deadline(leader, 0.3):
        asking = asyncio.create_task(leader.fetchval("SELECT 1 FROM pg_sleep(0.05)"))
        await asyncio.sleep(0)
        time.sleep(0.8)  # noqa: ASYNC251
        assert await asking == 1
    assert await leader.fetchval("SELECT 2") == 2, "its connection was kept"
    await leader.close()


async def test_a_use_inside_a_use_is_found(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []
    monkeypatch.setattr(connection_cache, "on_nested", found.append)

    async def alone() -> None:
        async with database.people():
            pass

    async with database.hot():
        await asyncio.create_task(alone())  # another task's use is its own
        assert found == []
        await alone()
    assert len(found) == 1
    await alone()
    assert len(found) == 1


async def test_a_use_inside_a_use_warns_where_nobody_tests(database: Database) -> None:
    with pytest.warns(RuntimeWarning, match="while it has one"):
        connection_cache._warn("a task wants a connection while it has one")


@pytest.mark.parametrize(("set_to", "found"), [("off", "on"), ("remote_apply", "remote_apply")])
async def test_a_role_cannot_make_202_a_lie(database_url: str, set_to: str, found: str) -> None:
    """A stronger wish of the operator's stands."""
    async with connected(database_url) as connection:
        name = await connection.fetchval("SELECT quote_ident(current_database())")
        await connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = {set_to}")
        try:
            opened = await Database.open(database_url)
            for use in (opened.hot, opened.people, opened.background):
                async with use() as one:
                    assert await one.fetchval("SHOW synchronous_commit") == found
            leader = await opened.dedicated()
            assert await leader.fetchval("SHOW synchronous_commit") == found
            opened.terminate()
        finally:
            await connection.execute(f"ALTER DATABASE {name} RESET synchronous_commit")
