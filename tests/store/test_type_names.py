"""Names of job types in the store: what a database from before keeps, and how names go."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.postgres import connected

from fairway.core.ids import TenantId, TypeId
from fairway.store.connections.database import Connection
from fairway.store.registry import type_names as store
from fairway.store.schema import migrate as module
from fairway.store.schema.migrate import all_migrations, migrate

LONG_AGO = timedelta(days=1000)
NOW = datetime.now(UTC)
AGES = store.Ages(timedelta(0), timedelta(0))


async def test_names_from_before_stay_until_their_jobs_are_gone(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [one for one in all_migrations() if one.number < 12]
    async with connected(empty_database_url) as connection:
        with monkeypatch.context() as older:
            older.setattr(module, "all_migrations", lambda: before)
            await migrate(connection, roles=False)
        await connection.execute(
            "INSERT INTO job_types (name, registered_at) VALUES ('worker', now()), ('hand', now()),"
            " ('submitted', NULL)"
        )
        await connection.execute(
            "INSERT INTO audit (actor, action, subject, detail) VALUES ('k', 'put_job_type',"
            " 'hand', 'Registered by hand.')"
        )
        await migrate(connection)
        rows = await connection.fetch("SELECT name, shared, by_hand FROM job_types ORDER BY id")
        assert [tuple(row) for row in rows] == [
            ("worker", True, False), ("hand", True, True), ("submitted", False, False),
        ]  # fmt: skip
        await connection.execute("UPDATE job_types SET created_at = now() - interval '1 year'")
        yesterday, tomorrow = NOW - timedelta(days=1), NOW + timedelta(days=1)
        assert await store.loose_types(connection, TypeId(0), yesterday, AGES, 10) == []
        (found,) = await store.loose_types(connection, TypeId(0), tomorrow, AGES, 10)
        named = await store.names_of(connection, [found.type])
        assert named == {found.type: "submitted"}


async def test_an_older_server_beside_a_newer_one_makes_names_that_stay(
    connection: Connection,
) -> None:
    """It knows nothing of whose they are: they stay as long as its jobs may."""
    await connection.execute("INSERT INTO job_types (name) VALUES ('theirs')")
    ours = await store.name_for_tenant(connection, TenantId(1), ["ours"], by_worker=False)
    await connection.execute("UPDATE tenant_types SET let_go_at = now()")
    await connection.execute("UPDATE job_types SET created_at = now() - interval '2 days'")
    loose = await store.loose_types(connection, TypeId(0), NOW - timedelta(days=1), AGES, 10)
    assert [one.type for one in loose] == [ours["ours"]]


async def test_a_name_that_is_named_while_it_is_removed_is_there(
    connection: Connection, other_connection: Connection
) -> None:
    """Whoever is first, the other sees it: a number, and a row that has it."""
    for n in range(20):
        name = f"race.{n}"
        old = await store.name_for_tenant(connection, TenantId(1), [name], by_worker=False)
        await connection.execute("DELETE FROM tenant_types")
        await connection.execute(
            "UPDATE job_types SET let_go_at = now() - interval '9 days' WHERE name = $1", name
        )
        named, gone = await asyncio.gather(
            store.name_for_tenant(connection, TenantId(2), [name], by_worker=True),
            store.drop_types(other_connection, list(old.values()), timedelta(days=7)),
        )
        assert (named == old) == (gone == [])
        (there,) = await store.read_names(connection, [name])
        assert there.id == named[name]
        stored = await store.names_for(connection, TenantId(2), [name])
        assert stored[name].by_worker


async def test_a_type_in_use_is_neither_let_go_nor_removed(connection: Connection) -> None:
    ids = await store.name_for_tenant(connection, TenantId(1), ["used"], by_worker=False)
    shared = await store.name_for_all(connection, ["said"])
    both = [*ids.values(), *shared.values()]
    assert await store.let_go_types(connection, both, NOW + LONG_AGO) == []
    await connection.execute("UPDATE job_types SET let_go_at = now() - interval '1 year'")
    assert await store.drop_types(connection, both, timedelta(days=7)) == []


async def test_what_lets_names_go_waits_for_nobody(
    connection: Connection, other_connection: Connection
) -> None:
    """Servers follow changes by their date: one that stood at a row would be dated too early."""
    shared = await store.name_for_all(connection, ["said"])
    (own,) = (
        await store.name_for_tenant(connection, TenantId(1), ["named"], by_worker=False)
    ).values()
    loose = await store.name_for_tenant(connection, TenantId(1), ["loose"], by_worker=False)
    await connection.execute("DELETE FROM tenant_types WHERE type = ANY($1)", [*loose.values()])
    none, soon = timedelta(0), NOW + LONG_AGO

    async def let_go() -> tuple[list[str], int, list[str]]:
        async with asyncio.timeout(30):
            return (
                await store.lapse_shared(connection, none),
                await store.let_go_names(connection, TenantId(1), [own], none),
                await store.let_go_types(connection, [*loose.values()], soon),
            )

    async with other_connection.transaction():
        await other_connection.execute("SELECT FROM job_types FOR NO KEY UPDATE")
        assert await let_go() == ([], 0, [])
    assert shared
    assert await let_go() == (["said"], 1, ["loose"])


async def test_names_are_dated_when_they_are_written(connection: Connection) -> None:
    """Not when the transaction began, which had to wait for its turn."""
    newer = "SELECT count(*) FROM job_types WHERE updated_at > now()"
    for n in range(2):  # made, and then brought back
        async with connection.transaction():
            await connection.execute("SELECT pg_sleep(0.01)")
            ids = await store.name_for_tenant(connection, TenantId(1), ["a"], by_worker=False)
            ids |= await store.name_for_all(connection, ["b"])
            assert await connection.fetchval(newer) == 2, n
            await connection.execute("UPDATE job_types SET shared = false, said_at = '-infinity'")
            await connection.execute("UPDATE tenant_types SET let_go_at = now()")
            assert len(await store.let_go_types(connection, [*ids.values()], NOW)) == 2
            assert await connection.fetchval(newer) == 2, n
