"""Migrations: their sum is the schema, they apply once, and the future is refused."""

from __future__ import annotations

import asyncio
from importlib import resources
from typing import Any

import pytest
from tests.postgres import Server, connected, fresh_database

from fairway.core.errors import Unavailable
from fairway.store.database import Connection
from fairway.store.migrate import all_migrations, migrate, pending

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
}


async def catalogs(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: [tuple(row) for row in await connection.fetch(query)]
        for name, query in CATALOGS.items()
    }


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
    monkeypatch.setattr("fairway.store.migrate.all_migrations", lambda: [broken])
    async with connected(empty_database_url) as connection:
        with pytest.raises(Exception, match="division by zero"):
            await migrate(connection)
        assert await connection.fetchval("SELECT to_regclass('half')") is None
        assert await connection.fetchval("SELECT count(*) FROM migrations") == 0
