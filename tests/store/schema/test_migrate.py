"""Migrations: their sum is the schema, they apply once, and the future is refused."""

from __future__ import annotations

import asyncio
from importlib import resources
from typing import Any

import pytest
from tests.postgres import Server, connected, fresh_database

from fairway.core.errors import Unavailable
from fairway.store.connections.database import Connection
from fairway.store.connections.server_version import refuse_old_postgres
from fairway.store.schema.migrate import LOCK_KEY, all_migrations, migrate, migrate_at, pending


@pytest.fixture
def connection(owner: Connection) -> Connection:
    """Tables are changed by who owns them."""
    return owner


CATALOGS = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
               a.attidentity, pg_get_expr(d.adbin, d.adrelid)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
          AND a.attnum > 0 AND NOT a.attisdropped AND c.relname <> 'migrations'
        ORDER BY 1, a.attnum""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'migrations'
        ORDER BY 1, 2""",
    "indexes": """
        SELECT tablename, indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'public' AND tablename <> 'migrations' ORDER BY 1, 2""",
    "tables": """
        SELECT relname, relkind::text, reloptions, pg_get_partkeydef(oid),
               pg_get_expr(relpartbound, oid)
        FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v')
          AND relname <> 'migrations' ORDER BY 1""",
    "functions": """
        SELECT proname, pg_get_functiondef(oid),
               EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner)))
                       WHERE grantee = 0)
        FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1""",
}


async def catalogs(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: [tuple(row) for row in await connection.fetch(query)]
        for name, query in CATALOGS.items()
    }


@pytest.mark.parametrize("number", [90624, 130021, 150000, 159999])
def test_a_postgresql_that_is_too_old_is_refused_by_name(number: int) -> None:
    with pytest.raises(Unavailable, match=f"This is PostgreSQL {number // 10_000}; .* 16 or newer"):
        refuse_old_postgres(number)


@pytest.mark.parametrize("number", [160000, 170002, 180000, 200001])
def test_a_newer_one_is_not(number: int) -> None:
    refuse_old_postgres(number)


async def test_the_sum_of_the_migrations_is_the_schema(postgres_server: Server) -> None:
    schema = resources.files("fairway.store").joinpath("schema.sql").read_text("utf-8")
    async with (
        fresh_database(postgres_server, empty=True) as by_steps_url,
        fresh_database(postgres_server, empty=True) as at_once_url,
        connected(by_steps_url) as by_steps,
        connected(at_once_url) as at_once,
    ):
        await migrate(by_steps)
        await at_once.execute(schema)
        left, right = await catalogs(by_steps), await catalogs(at_once)
    assert len(left["columns"]) > 40
    assert left == right


async def test_numbers_have_no_gap_and_no_twin() -> None:
    numbers = [migration.number for migration in all_migrations()]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_second_migrate_does_nothing(empty_database_url: str) -> None:
    async with connected(empty_database_url) as connection:
        assert await migrate(connection) == all_migrations()
        before = await connection.fetch("SELECT * FROM migrations")
        assert await migrate(connection) == []
        assert await connection.fetch("SELECT * FROM migrations") == before
        assert before[0]["checksum"] == all_migrations()[0].checksum


async def test_two_migrators_at_once_apply_everything_once(empty_database_url: str) -> None:
    async with connected(empty_database_url) as one, connected(empty_database_url) as other:
        applied = await asyncio.gather(migrate(one), migrate(other))
        assert sorted(map(len, applied)) == [0, len(all_migrations())]
        assert await one.fetchval("SELECT count(*) FROM migrations") == len(all_migrations())
        assert await one.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


async def test_a_database_from_the_future_is_refused(connection: Connection) -> None:
    await connection.execute("INSERT INTO migrations VALUES (9999, '9999_time_travel', '')")
    for ask in (pending, migrate):
        with pytest.raises(Unavailable, match="9999_time_travel") as refusal:
            await ask(connection)
        assert refusal.value.code == "SCHEMA_TOO_NEW"
    assert await connection.fetchval("SELECT count(*) FROM pg_locks WHERE locktype='advisory'") == 0


async def test_a_migration_that_fails_leaves_nothing(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = all_migrations()[0]._replace(text="CREATE TABLE half (id int); SELECT 1 / 0;")
    monkeypatch.setattr("fairway.store.schema.migrate.all_migrations", lambda: [broken])
    async with connected(empty_database_url) as connection:
        with pytest.raises(Exception, match="division by zero"):
            await migrate(connection)
        assert await connection.fetchval("SELECT to_regclass('half')") is None
        assert await connection.fetchval("SELECT count(*) FROM migrations") == 0


async def test_a_server_waits_for_another_that_migrates_and_says_so(
    empty_database_url: str,
) -> None:
    """However long it takes: the everyday limits of statements and locks do not hold for it."""
    reasons: list[str] = []
    async with connected(empty_database_url) as other, connected(empty_database_url) as observer:
        name = await other.fetchval("SELECT current_database()")
        await other.execute(f"ALTER DATABASE {name} SET lock_timeout = '50ms'")
        await other.execute(f"ALTER DATABASE {name} SET statement_timeout = '1s'")
        await other.execute("SELECT pg_advisory_lock($1)", LOCK_KEY)

        tasks: list[asyncio.Task[None]] = []

        async def finish() -> None:
            await other.execute("SELECT pg_advisory_unlock($1)", LOCK_KEY)

        def say(reason: str) -> None:
            reasons.append(reason)
            if len(reasons) == 2:
                tasks.append(asyncio.create_task(finish()))

        assert await migrate_at(empty_database_url, say) == all_migrations()
        assert await migrate_at(empty_database_url, say) == []
        assert await observer.fetchval("SELECT count(*) FROM migrations") == len(all_migrations())
    assert len(reasons) >= 2
    assert "another server migrates" in reasons[0]


async def test_a_migration_may_take_longer_than_a_statement(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = all_migrations()[0]._replace(text="SELECT pg_sleep(0.5)")
    monkeypatch.setattr("fairway.store.schema.migrate.all_migrations", lambda: [slow])
    async with connected(empty_database_url) as connection:
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f"ALTER DATABASE {name} SET statement_timeout = '100ms'")
    assert await migrate_at(empty_database_url, roles=False) == [slow]


async def test_a_migration_asks_for_its_lock_again_and_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for no lock long enough to hold up those behind it."""
    last = all_migrations()[-1]
    wider = last._replace(number=9999, name="9999_wider", text="ALTER TABLE jobs ADD wide int")
    known = [*all_migrations(), wider]
    monkeypatch.setattr("fairway.store.schema.migrate.all_migrations", lambda: known)
    reasons: list[str] = []
    async with connected(database_url) as reader:
        reading = reader.transaction()
        await reading.start()
        await reader.execute("LOCK TABLE jobs IN ACCESS SHARE MODE")  # a long report

        tasks: list[asyncio.Task[None]] = []

        def say(reason: str) -> None:
            reasons.append(reason)
            if len(reasons) == 2:
                tasks.append(asyncio.create_task(reading.rollback()))

        assert await migrate_at(database_url, say) == [wider]
    assert len(reasons) >= 2
    assert "9999_wider waits for a lock" in reasons[0]
