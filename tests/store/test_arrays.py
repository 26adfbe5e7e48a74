"""Arrays as text mean to PostgreSQL what they meant to us."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairway.store import arrays
from fairway.store.connections.database import Database

RELAXED = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def numbers_of(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits), (1 << bits) - 1)


@RELAXED
@given(values=st.lists(st.one_of(st.none(), numbers_of(63))))
async def test_numbers(database: Database, values: list[int | None]) -> None:
    async with database.hot() as connection:
        answer = await connection.fetchval("SELECT $1::text::bigint[]", arrays.numbers(values))
    assert answer == values


@RELAXED
@given(values=st.lists(st.uuids().map(str)))
async def test_ids(database: Database, values: list[str]) -> None:
    async with database.hot() as connection:
        answer = await connection.fetchval("SELECT $1::text::uuid[]::text[]", arrays.ids(values))
    assert answer == values


@RELAXED
@given(values=st.lists(st.tuples(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 16) - 1))))
async def test_places(database: Database, values: list[tuple[int, int]]) -> None:
    said = [f"({block},{offset})" for block, offset in values]
    async with database.hot() as connection:
        answer = await connection.fetchval("SELECT $1::text::tid[]::text[]", arrays.places(said))
    assert answer == said


def test_rows_become_one_array_a_column_and_none_become_empty_ones() -> None:
    rows = [(1, "a", "left out"), (2, "b", "left out")]
    assert arrays.columns(rows, "numbers", "names") == {"numbers": [1, 2], "names": ["a", "b"]}
    assert arrays.columns([], "numbers", "names") == {"numbers": [], "names": []}


@RELAXED
@given(values=st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"))))
async def test_texts(database: Database, values: list[str]) -> None:
    async with database.hot() as connection:
        answer = await connection.fetchval("SELECT $1::text::text[]", arrays.texts(values))
    assert answer == values
