"""What one connection was told of PostgreSQL's own types, the others need not ask."""

from __future__ import annotations

from typing import Any

from asyncpg import introspection
from tests.postgres import connected

from fairway.store.connections import known_types
from fairway.store.connections.database import Connection


async def asked(connection: Connection, statement: str, *values: Any) -> tuple[Any, bool]:
    """The answer, and whether the driver had to ask for a type first."""
    heard: list[Any] = []
    with connection.query_logger(heard.append):
        answer = await connection.fetchval(statement, *values)
    return answer, any(one.query == introspection.INTRO_LOOKUP_TYPES for one in heard)


async def test_an_array_is_asked_for_by_one_connection(database_url: str) -> None:
    known_types._told.clear()
    for is_first in (True, False):
        async with connected(database_url) as connection:
            for statement, values in (("SELECT $1::xid8[]", [7]), ("SELECT $1::macaddr[]", [])):
                assert await asked(connection, statement, values) == (values, is_first)


async def test_a_type_made_in_a_database_is_asked_for_in_each(database_url: str) -> None:
    for labels in (("a", "b"), ("c",)):
        async with connected(database_url) as connection:
            named = ", ".join(f"'{label}'" for label in labels)
            async with connection.transaction():
                await connection.execute(f"CREATE TYPE letter AS ENUM ({named})")
                got = await asked(connection, "SELECT enum_range(NULL::letter)")
                assert got == (list(labels), True)
                both = await asked(connection, "SELECT $1::letter[] || $2::letter", [], labels[0])
                assert both[0] == [labels[0]]
                await connection.execute("DROP TYPE letter")


async def test_a_statement_without_a_name_stands_after_a_remembered_type(database_url: str) -> None:
    """The driver prepares it again when its own question took its place, and only then."""
    for _ in range(2):
        async with connected(database_url) as connection:
            rows = await connection.fetch("SELECT unnest($1::text[]) AS word", ["a", "b"])
            assert [row["word"] for row in rows] == ["a", "b"]
            await connection.copy_records_to_table(
                "job_types", columns=["name"], records=[("one",)]
            )
            await connection.execute("DELETE FROM job_types")
