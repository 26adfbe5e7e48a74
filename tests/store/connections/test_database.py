"""Pools: what every connection obeys, and what the hot ones are pinned to."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from fairway.store import sql
from fairway.store.connections.database import (
    BACKGROUND_PLANS,
    DISCONNECTED,
    PINNED_PLANS,
    Connection,
    Database,
    execute,
    fetch,
    fetch_row,
)
from fairway.store.connections.session_limits import SHORT_LOCKS, TIME_LIMITS


async def settings_of(connection: Connection, names: dict[str, str]) -> dict[str, str]:
    return {name: await connection.fetchval(f"SHOW {name}") for name in names}


async def test_hot_connections_are_pinned_to_lookups_by_key(database: Database) -> None:
    async with database.hot() as connection:
        assert await settings_of(connection, PINNED_PLANS) == PINNED_PLANS
        assert await settings_of(connection, TIME_LIMITS) == {**TIME_LIMITS, **SHORT_LOCKS}


async def test_calm_connections_may_join_as_they_like_but_not_dawdle(database: Database) -> None:
    async with database.background() as connection:
        assert await settings_of(connection, BACKGROUND_PLANS) == BACKGROUND_PLANS
        assert await settings_of(connection, TIME_LIMITS) == TIME_LIMITS


async def test_the_leader_has_a_connection_of_its_own(database: Database) -> None:
    leader = await database.dedicated()
    assert await leader.fetchval("SHOW application_name") == "fairway-leader"
    await leader.close()


async def test_202_means_on_disk_on_every_connection(database: Database) -> None:
    for use in (database.hot, database.people, database.background):
        async with use() as connection:
            assert await connection.fetchval("SHOW synchronous_commit") == "on"


async def test_the_three_ways_to_run_a_statement(connection: Connection) -> None:
    insert = sql._compile("x", "INSERT INTO job_types (name) SELECT unnest(:names::text[])")
    assert await execute(connection, insert, names=["a", "b"]) == 2
    read = sql._compile("x", "SELECT name FROM job_types WHERE name >= :least ORDER BY name")
    assert [row["name"] for row in await fetch(connection, read, least="a")] == ["a", "b"]
    first = await fetch_row(connection, read, least="b")
    assert first is not None
    assert first["name"] == "b"
    assert await fetch_row(connection, read, least="c") is None


async def test_a_store_that_is_away_is_recognized(database: Database, database_url: str) -> None:
    async with database.hot() as connection:
        victim = connection.get_server_pid()
        killer = await asyncpg.connect(database_url)
        await killer.fetchval("SELECT pg_terminate_backend($1, 1000)", victim)
        await killer.close()
        with pytest.raises(DISCONNECTED):
            await connection.fetchval("SELECT 1")
    async with database.hot() as connection:  # the pool mends itself
        assert await connection.fetchval("SELECT 1") == 1


async def test_a_connection_stays_at_hand_between_uses(database: Database) -> None:
    async with database.hot() as connection:
        first = await connection.fetchval("SELECT pg_backend_pid()")
    async with database.hot() as connection:
        assert await connection.fetchval("SELECT pg_backend_pid()") == first


async def test_a_use_that_was_cut_short_leaves_nothing_behind(database: Database) -> None:
    async def dawdle() -> None:
        async with database.hot() as connection, connection.transaction():
            await connection.execute("SELECT pg_sleep(30)")

    task = asyncio.create_task(dawdle())
    await asyncio.sleep(0.2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with database.hot() as connection:
        assert not connection.is_in_transaction()
        assert await connection.fetchval("SELECT 1") == 1


async def test_a_use_that_failed_leaves_no_transaction_open(database: Database) -> None:
    async with database.hot() as connection:
        await connection.execute("BEGIN")
    async with database.hot() as connection:
        assert not connection.is_in_transaction()


async def test_more_uses_than_connections_take_turns(database: Database) -> None:
    async def use(number: int) -> int:
        async with database.hot() as connection:
            await connection.execute("SELECT pg_sleep(0.01)")
            return number

    async with asyncio.timeout(20):
        assert await asyncio.gather(*map(use, range(100))) == list(range(100))
    assert database.waiting == 0


async def test_closing_waits_for_a_use_under_way_and_no_longer(database_url: str) -> None:
    closing = await Database.open(database_url)

    async def dawdle() -> None:
        async with closing.hot() as connection:
            await connection.execute("SELECT pg_sleep(0.3)")

    use = asyncio.create_task(dawdle())
    await asyncio.sleep(0.1)
    async with asyncio.timeout(30):
        await closing.close()
    assert use.done()


async def test_a_connection_that_broke_while_at_hand_is_not_used(
    database: Database, database_url: str
) -> None:
    async with database.hot() as connection:
        victim = connection.get_server_pid()
    killer = await asyncpg.connect(database_url)
    await killer.fetchval("SELECT pg_terminate_backend($1, 1000)", victim)
    await killer.close()
    await asyncio.sleep(0.1)  # the news reaches the event loop
    async with database.hot() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_a_connection_in_use_is_made_anew_too(database: Database) -> None:
    """After a failover it may lead to the server that was demoted, as those at rest do."""
    async with database.hot() as connection:
        old = connection.get_server_pid()
        await database.renew()
    async with database.hot() as connection:
        first = connection.get_server_pid()
    assert first != old
    async with database.hot() as connection:
        assert connection.get_server_pid() == first, "kept at hand, as before"
