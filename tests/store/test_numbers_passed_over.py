"""A new directory gives no tenant a number that another may have given: one step, forward only."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from time import perf_counter

import asyncpg
import pytest
from tests.postgres import connected

from fairway.core.ids import TenantId
from fairway.store.connections.database import Connection, Database
from fairway.store.regions import regions as store
from fairway.store.schema.migrate import all_migrations, migrate

PASSED_OVER = 100_000
BEFORE = [one for one in all_migrations() if one.number <= 51]
PASS_OVER = "SELECT fairway_pass_over_tenants()"
ADD = "INSERT INTO tenants (name) SELECT 'n' || gen_random_uuid() RETURNING id"


@pytest.mark.parametrize("known", [3, 250_000])
async def test_it_begins_above_all_that_is_known(connection: Connection, known: int) -> None:
    """By its own numbers, or by those that came from the lost directory."""
    await store.found_region(connection, "us", "eu")
    given = [await connection.fetchval(ADD) for _ in range(5)]
    await connection.execute("INSERT INTO tenants (id, name) VALUES ($1, 'theirs')", known + 5)
    await store.be_directory(connection, 1)
    assert await connection.fetchval(ADD) == max(*given, known + 5) + PASSED_OVER + 1


async def test_it_takes_one_step(connection: Connection) -> None:
    """As many questions as numbers took a second, and no longer than that has a quick statement."""
    await store.found_region(connection, "us", "eu")
    seconds: list[float] = []
    for _ in range(5):
        began = perf_counter()
        await store.be_directory(connection, 1)
        seconds.append(perf_counter() - began)
    assert min(seconds) < 0.05


async def test_two_at_once_and_tenants_made_meanwhile_meet_nowhere(database: Database) -> None:
    async def made() -> list[int]:
        async with database.people() as connection:
            return [await connection.fetchval(ADD) for _ in range(100)]

    async def passed_over() -> list[int]:
        async with database.people() as connection:
            return [await connection.fetchval(PASS_OVER) for _ in range(20)]

    async with database.people() as connection:
        await store.found_region(connection, "us", "eu")
    given, one, other = await asyncio.gather(made(), passed_over(), passed_over())
    assert len(set(given)) == 100
    assert given == sorted(given)
    assert all(later - last >= PASSED_OVER for last, later in pairwise(sorted([*one, *other])))


async def test_the_servers_role_cannot_set_numbers_back(
    database: Database, connection: Connection
) -> None:
    await store.found_region(connection, "us", "eu")
    last = await connection.fetchval(PASS_OVER)
    for attempt in (
        "SELECT setval('tenants_id_seq', 1)",
        "ALTER SEQUENCE tenants_id_seq RESTART WITH 1",
        "ALTER FUNCTION fairway_pass_over_tenants() RESET search_path",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(attempt)
    await connection.execute(
        "CREATE TEMP SEQUENCE tenants_id_seq; CREATE TEMP TABLE tenants AS SELECT 2000000000 AS id"
    )
    try:
        assert await connection.fetchval(PASS_OVER) == last + PASSED_OVER
    finally:
        await connection.execute("DROP SEQUENCE pg_temp.tenants_id_seq; DROP TABLE pg_temp.tenants")
    async with database.quick(TenantId(1)) as asked:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await asked.fetchval(PASS_OVER)


async def test_without_regions_nothing_is_passed_over(connection: Connection) -> None:
    first = await connection.fetchval(ADD)
    assert await connection.fetchval(PASS_OVER) is None
    assert await connection.fetchval(ADD) == first + 1


@pytest.mark.parametrize("roles", [True, False])
async def test_a_database_of_before_can_have_a_new_directory(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch, roles: bool
) -> None:
    async with connected(empty_database_url) as owner:
        with monkeypatch.context() as patch:
            patch.setattr("fairway.store.schema.migrate.all_migrations", lambda: BEFORE)
            await migrate(owner, roles=False)
        await store.found_region(owner, "us", "eu")
        known = await owner.fetchval(ADD)
        await migrate(owner, roles=roles)
    database = await Database.open(empty_database_url, row_security=roles)
    try:
        async with database.people() as connection:
            await store.be_directory(connection, 1)
            assert await connection.fetchval(ADD) == known + PASSED_OVER + 1
    finally:
        database.terminate()
