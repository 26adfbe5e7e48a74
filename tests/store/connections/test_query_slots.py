"""Slow questions: few at a time, one of a tenant's, and a short line before them."""

from __future__ import annotations

import asyncio

import pytest

from fairway.core.errors import LimitReached, Unavailable
from fairway.core.ids import TenantId
from fairway.store.connections.database import Database
from fairway.store.connections.query_slots import IN_LINE_MAX, SLOW_MAX, QuerySlots

GREEDY, OTHER = TenantId(1), TenantId(2)
BEYOND = IN_LINE_MAX + 4


async def ask(database: Database, tenant: int, seconds: float = 0) -> None:
    async with database.slow(TenantId(tenant)) as connection:
        await connection.execute(f"SELECT pg_sleep({seconds})")


async def test_the_slow_questions_of_one_tenant_hold_up_nobody(database: Database) -> None:
    greedy = [asyncio.create_task(ask(database, GREEDY, 0.7)) for _ in range(BEYOND)]
    await asyncio.sleep(0.1)
    async with asyncio.timeout(2):  # less than they take one after the other
        await ask(database, OTHER)
        for _ in range(10):
            async with database.people() as connection:
                assert await connection.fetchval("SELECT 1") == 1
    assert not all(task.done() for task in greedy)
    refused = [
        error
        for error in await asyncio.gather(*greedy, return_exceptions=True)
        if isinstance(error, LimitReached)
    ]
    assert [error.code for error in refused] == ["TOO_MANY_QUESTIONS"] * (BEYOND - IN_LINE_MAX)


async def ask_too_much(database: Database) -> None:
    async with database.slow(GREEDY) as connection, connection.transaction():
        await connection.execute("SET LOCAL statement_timeout = '50ms'")
        await connection.execute("SELECT pg_sleep(5)")


async def test_a_question_that_takes_too_long_hears_why(database: Database) -> None:
    with pytest.raises(Unavailable) as caught:
        await ask_too_much(database)
    assert caught.value.code == "QUESTION_TOO_LARGE"
    await ask(database, GREEDY)  # the place is free again


async def test_a_place_that_does_not_come_in_time_is_not_waited_for() -> None:
    places = QuerySlots(0.05)
    for tenant in range(SLOW_MAX):
        await places.take(TenantId(tenant))
    with pytest.raises(Unavailable):
        await places.take(OTHER)
    places.give_back(TenantId(0))
    await places.take(OTHER)


async def test_who_leaves_the_line_leaves_nothing_behind() -> None:
    places = QuerySlots(20)
    await places.take(GREEDY)
    waiting = [asyncio.create_task(places.take(GREEDY)) for _ in range(3)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    places.give_back(GREEDY)
    async with asyncio.timeout(10):
        await places.take(GREEDY)
        await places.take(OTHER)
    places.give_back(GREEDY)
    places.give_back(OTHER)
    assert not places._of_tenant


async def test_the_quick_questions_of_one_tenant_hold_up_nobody(database: Database) -> None:
    async def look(tenant: int, seconds: float) -> None:
        async with database.quick(TenantId(tenant)) as connection:
            await connection.execute(f"SELECT pg_sleep({seconds})")

    greedy = [asyncio.create_task(look(GREEDY, 0.3)) for _ in range(20)]
    await asyncio.sleep(0.1)
    async with asyncio.timeout(1):  # less than they take two at a time
        for _ in range(10):
            await look(OTHER, 0)
    assert not all(task.done() for task in greedy)
    await asyncio.gather(*greedy, return_exceptions=True)
