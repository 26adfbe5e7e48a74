"""Rows are written whatever stands among them: bad ones stand alone, the others go in once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import ceil, log2

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.core.ids import ShardId, Term
from fairway.services.recording import row_writer
from fairway.services.recording.row_writer import (
    OnLock,
    Part,
    RowRefused,
    RowsLocked,
    RowsWritten,
    RowWriter,
)
from fairway.store.connections.database import Connection, Database
from fairway.store.connections.error_classes import REASON_CHARACTERS_MAX, is_about_rows, reason_of
from fairway.store.connections.shard_terms import ShardsLost

SHARD = ShardId(0)


class Table:
    """Takes rows, but not bad ones; counts what it was asked to do."""

    def __init__(self, bad: set[int]) -> None:
        self.bad = bad
        self.passing: list[Exception] = []  # raised first, one a statement
        self.asked: list[list[int]] = []
        self.written: list[int] = []

    async def insert(
        self, connection: Connection, terms: Mapping[ShardId, Term], rows: Sequence[int]
    ) -> set[str]:
        self.asked.append(list(rows))
        if self.passing:
            raise self.passing.pop(0)
        if self.bad.intersection(rows):
            raise asyncpg.NumericValueOutOfRangeError("bigint out of range")
        self.written += rows
        return {str(row) for row in rows}


async def write(
    database: Database, table: Table, count: int, terms: dict[ShardId, Term] | None = None
) -> list[Part[set[str]]]:
    writer = RowWriter(database, {SHARD: Term(1)} if terms is None else terms)
    return [part async for part in writer.write(table.insert, [SHARD] * count, list(range(count)))]


@pytest.mark.parametrize("bad", [set(), {0}, {1999}, {7, 8, 1000}, set(range(100, 120))])
async def test_bad_rows_stand_alone_and_cost_a_few_statements(
    database: Database, bad: set[int]
) -> None:
    table = Table(bad)
    parts = await write(database, table, 2000)
    assert sorted(table.written) == sorted(set(range(2000)) - bad), "each once"
    refused = {part.number for part in parts if isinstance(part, RowRefused)}
    assert refused == bad
    for part in parts:
        if isinstance(part, RowsWritten):
            assert part.answer == {str(row) for row in part.places}
    assert len(table.asked) <= 1 + 2 * len(bad) * ceil(log2(2000))


async def test_where_there_is_no_row_nothing_is_asked(database: Database) -> None:
    """Of a group whose ends could all not be put into rows: they are refused by then."""
    table = Table(set())
    assert await write(database, table, 0) == []
    assert table.asked == []


async def test_a_shard_that_was_lost_while_its_rows_waited_for_their_turn_has_none(
    database: Database,
) -> None:
    table, turn, terms = Table(set()), asyncio.Semaphore(1), {SHARD: Term(1)}
    writer = RowWriter(database, terms, lambda shard: turn)
    await turn.acquire()

    async def write_two() -> list[Part[set[str]]]:
        return [part async for part in writer.write(table.insert, [SHARD] * 2, [1, 2])]

    writing = asyncio.create_task(write_two())
    await asyncio.sleep(0.01)
    del terms[SHARD]
    turn.release()
    assert (await writing, table.asked, turn.locked()) == ([], [], False)


async def test_what_passes_is_no_reason_to_part_rows(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_writer, "RETRY_SECONDS", 0.001)
    table = Table(set())
    table.passing = [
        asyncpg.QueryCanceledError("statement timeout"),
        asyncpg.LockNotAvailableError("lock timeout"),
        asyncpg.DeadlockDetectedError("deadlock"),
        asyncpg.SerializationError("could not serialize"),
        asyncpg.DiskFullError("no space left"),
        asyncpg.ReadOnlySQLTransactionError("read-only"),
        asyncpg.InsufficientPrivilegeError("permission denied"),
        ConnectionResetError("gone"),
    ]
    parts = await write(database, table, 50)
    assert parts == [RowsWritten(range(50), {str(row) for row in range(50)})]
    assert table.asked == [list(range(50))] * 9


async def test_after_the_term_is_lost_nothing_more_counts_as_written(database: Database) -> None:
    """Of a group in parts, too: what is in no part is acknowledged by nobody."""
    terms = {SHARD: Term(1)}
    table = Table({3})

    writer = RowWriter(database, terms)
    parts = []
    async for part in writer.write(table.insert, [SHARD] * 8, list(range(8))):
        parts.append(part)
        terms.clear()
    assert [part.places for part in parts if isinstance(part, RowsWritten)] == [range(4, 8)]
    assert len(parts) == 1
    assert table.written == [4, 5, 6, 7]


async def test_rows_taken_under_a_term_are_not_written_under_the_next(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shard went away and came back before the store was asked again."""
    monkeypatch.setattr(row_writer, "RETRY_SECONDS", 0.001)
    terms = {SHARD: Term(1)}
    table = Table(set())
    table.passing = [asyncpg.LockNotAvailableError("lock timeout")]

    async def insert(
        connection: Connection, terms_then: Mapping[ShardId, Term], rows: Sequence[int]
    ) -> set[str]:
        try:
            return await table.insert(connection, terms_then, rows)
        finally:
            terms[SHARD] = Term(2)

    writer = RowWriter(database, terms)
    assert [part async for part in writer.write(insert, [SHARD] * 3, [1, 2, 3])] == []
    assert (len(table.asked), table.written) == (1, [])


async def test_of_a_batch_over_shards_only_those_that_are_lost_are_dropped(
    database: Database,
) -> None:
    """One is another's before, one is found to be by the statement, one goes while it runs."""
    shards = [ShardId(row % 5) for row in range(40)]
    terms = {ShardId(shard): Term(7) for shard in (0, 1, 2, 3)}
    asked: list[set[ShardId]] = []

    async def insert(
        connection: Connection, held: Mapping[ShardId, Term], rows: Sequence[int]
    ) -> set[str]:
        asked.append(set(held))
        assert {shards[row] for row in rows} == set(held)
        if ShardId(1) in held:
            raise ShardsLost({ShardId(1)})
        terms.pop(ShardId(2), None)
        return {str(row) for row in rows}

    writer = RowWriter(database, terms)
    parts = [part async for part in writer.write(insert, shards, list(range(40)))]
    assert asked == [{0, 1, 2, 3}, {0, 2, 3}]
    (part,) = parts
    assert isinstance(part, RowsWritten)
    assert part.of(shards) == [0, 3] * 8


async def test_a_row_that_somebody_holds_stops_its_own_shard_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_writer, "RETRY_SECONDS", 0.001)
    shards, asked = [ShardId(row % 4) for row in range(40)], list[set[ShardId]]()

    async def insert(
        connection: Connection, held: Mapping[ShardId, Term], rows: Sequence[int]
    ) -> set[str]:
        asked.append(set(held))
        assert {shards[row] for row in rows} == set(held), "no other shard is guarded, or waits"
        if ShardId(1) in held and len(asked) < 8:
            raise asyncpg.LockNotAvailableError("lock timeout")
        return {str(row) for row in rows}

    writer = RowWriter(database, {ShardId(shard): Term(7) for shard in range(4)})
    parts = [part async for part in writer.write(insert, shards, list(range(40)))]
    written = [part.of(shards)[0] for part in parts if isinstance(part, RowsWritten)]
    assert written == [0, 2, 3, 1], "and it comes as soon as its row is free"
    assert asked == [{0, 1, 2, 3}, {0}, {1}, {2}, {3}, {1}, {1}, {1}]


async def test_a_held_row_is_left_to_another_writer_which_halves_until_it_stands_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_writer, "RETRY_SECONDS", 0.001)
    held, tries = 13, list[int]()

    async def insert(
        connection: Connection, terms: Mapping[ShardId, Term], rows: Sequence[int]
    ) -> set[str]:
        if held in rows and tries.count(1) < 3:
            tries.append(len(rows))
            raise asyncpg.LockNotAvailableError("lock timeout")
        return {str(row) for row in rows}

    shards = [ShardId(row % 2) for row in range(40)]
    writer = RowWriter(database, {ShardId(shard): Term(7) for shard in range(2)})
    first = writer.write_beside(insert, shards, list(range(40)), OnLock.LEAVE)
    left = [part async for part in first]
    places = [list(part.places) for part in left if not isinstance(part, RowRefused)]
    assert places == [[*range(0, 40, 2)], [*range(1, 40, 2)]]
    assert [type(part) for part in left] == [RowsWritten, RowsLocked]
    odd = [*range(1, 40, 2)]
    beside = writer.write_beside(insert, [ShardId(1)] * 20, odd, OnLock.HALVE)
    written = [part.of(odd) async for part in beside if isinstance(part, RowsWritten)]
    assert sorted(row for some in written for row in some) == odd
    assert written[-1] == [held], "those that came with it did not wait for it"
    assert tries == [40, 20, 20, 10, 5, 3, 1, 1, 1] or tries == [40, 20, 20, 10, 5, 2, 1, 1, 1]


async def test_held_rows_are_left_under_their_term_and_not_when_it_is_over(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the next one they would be written, or refused, for a lease of long ago."""
    monkeypatch.setattr(row_writer, "RETRY_SECONDS", 0.001)
    terms = {ShardId(shard): Term(7) for shard in range(3)}
    shards = [*terms]

    async def insert(
        connection: Connection, held: Mapping[ShardId, Term], rows: Sequence[int]
    ) -> set[str]:
        if len(held) > 1 or held.keys() <= {0, 1}:
            raise asyncpg.LockNotAvailableError("lock timeout")
        terms[ShardId(0)] = Term(9)  # it went, and came back, while the last was written
        return set()

    writer = RowWriter(database, terms)
    parts = writer.write_beside(insert, shards, [*range(3)], OnLock.LEAVE)
    assert [part async for part in parts] == [RowsWritten([2], set()), RowsLocked([1], Term(7))]
    later = writer.write_beside(insert, [ShardId(0)], [0], OnLock.HALVE, term=Term(7))
    assert [part async for part in later] == []


async def patiently(writer: RowWriter, table: Table, rows: list[int]) -> list[Part[set[str]]]:
    shards = [SHARD] * len(rows)
    return [part async for part in writer.write(table.insert, shards, rows)]


async def test_with_patience_an_error_inside_the_store_may_pass(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_writer, "RETRY_SECONDS", 0.001)
    table, writer = Table({5}), RowWriter(database, {SHARD: Term(1)}, patient=True)
    table.passing = [asyncpg.InternalServerError("cache lookup failed")]
    assert [type(part) for part in await patiently(writer, table, [1])] == [RowsWritten]
    parts = await patiently(writer, table, [4, 5, 6])
    assert [part.number for part in parts if isinstance(part, RowRefused)] == [1]
    assert sorted(table.written) == [1, 4, 6]


async def test_with_patience_no_row_is_refused_while_all_are(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until one is taken, of whomever: what is refused then is refused for itself."""
    monkeypatch.setattr(row_writer, "RETRY_SECONDS", 0.001)
    monkeypatch.setattr(row_writer, "RETRY_SECONDS_MAX", 0.01)
    many = list(range(2 * row_writer.WIDESPREAD))
    table, writer = Table(set(many)), RowWriter(database, {SHARD: Term(1)}, patient=True)
    writing = asyncio.create_task(patiently(writer, table, many))
    await asyncio.sleep(0.5)
    assert not writing.done()
    table.bad = {many[3], many[7]}
    async with asyncio.timeout(30):
        parts = await writing
    assert {part.number for part in parts if isinstance(part, RowRefused)} == table.bad
    assert sorted(table.written) == sorted(set(many) - table.bad)


@given(st.text())
def test_a_reason_is_a_line(text: str) -> None:
    error = asyncpg.CheckViolationError(text)
    assert is_about_rows(error)
    assert len(reason_of(error)) <= REASON_CHARACTERS_MAX
    assert "\n" not in reason_of(error)
    assert reason_of(ValueError(text))
