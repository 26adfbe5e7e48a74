"""What an error of the store is about: the moment, which passes, or the rows that were sent."""

from __future__ import annotations

import asyncpg
import pytest
from tests.postgres import connected

from fairway.store.connections.connection_cache import StoreAway
from fairway.store.connections.database import DISCONNECTED, Database
from fairway.store.connections.error_classes import (
    REASON_CHARACTERS_MAX,
    code_of,
    has_answered,
    is_about_rows,
    reason_of,
)

PASSING = ["40001", "40P01", "55P03", "57014", "53100", "53200", "53300", "25006", "57P01",
           "57P02", "57P03", "57P04", "57P05", "08006", "08001", "58000", "58030"]  # fmt: skip


@pytest.mark.parametrize("code", PASSING)
async def test_what_passes_is_recognized(database: Database, code: str) -> None:
    with pytest.raises(DISCONNECTED):
        async with database.background() as connection:
            await connection.execute(f"DO $$BEGIN RAISE 'x' USING ERRCODE = '{code}'; END$$")
    async with database.background() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_a_node_that_is_away_behind_the_store_passes_too(database: Database) -> None:
    said = "failure on connection marked as essential"
    with pytest.raises(StoreAway):
        async with database.background() as connection:
            await connection.execute(f"DO $$BEGIN RAISE '{said}' USING ERRCODE = 'XX000'; END$$")


@pytest.mark.parametrize("code", ["23505", "22003", "XX000", "42P01"])
async def test_what_does_not_pass_is_not(database: Database, code: str) -> None:
    with pytest.raises(asyncpg.PostgresError) as caught:
        async with database.background() as connection:
            await connection.execute(f"DO $$BEGIN RAISE 'x' USING ERRCODE = '{code}'; END$$")
    assert not isinstance(caught.value, DISCONNECTED)


ABOUT_ROWS = ["23505", "23514", "22003", "22021", "22P05", "54000", "P0001", "XX001"]
NOT_ABOUT_ROWS = ["42P01", "42501", "0A000", *PASSING]


@pytest.mark.parametrize("code", ABOUT_ROWS + NOT_ABOUT_ROWS)
async def test_only_what_speaks_of_the_rows_gives_them_up(database_url: str, code: str) -> None:
    """A job is never ended for a fault of the moment, nor for one of ours."""
    async with connected(database_url) as connection:
        with pytest.raises(asyncpg.PostgresError) as caught:
            await connection.execute(f"DO $$BEGIN RAISE 'x' USING ERRCODE = '{code}'; END$$")
    assert is_about_rows(caught.value) == (code in ABOUT_ROWS)
    assert has_answered(caught.value)
    assert code_of(caught.value) == code
    assert reason_of(caught.value).endswith(f"({code})")


@pytest.mark.parametrize(
    ("error", "is_bad_row"),
    [
        (ConnectionResetError(), False),
        (TimeoutError(), False),
        (StoreAway("away"), False),
        (OverflowError("int too large"), True),  # raised while the rows were packed
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "half a character"), True),
    ],
)
def test_what_was_raised_here(error: Exception, is_bad_row: bool) -> None:
    assert is_about_rows(error) == is_bad_row
    assert not has_answered(error)
    assert reason_of(error)


def test_a_reason_is_a_line_of_bounded_length() -> None:
    error = ValueError("one\n  two\t" + "x" * 1000)
    assert reason_of(error).startswith("one two x")
    assert len(reason_of(error)) == REASON_CHARACTERS_MAX
    assert reason_of(ValueError()) == "ValueError"
