"""Ends of runs on a distributed store: the rows, then what is booked and noted, in one transaction.

All of it is of shards that lie together, so the transaction is a matter of one node. It answers
what the one statement of plain PostgreSQL would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairway.core.ids import ShardId
from fairway.store import arrays
from fairway.store.connections.database import Connection, Record, execute, fetch
from fairway.store.sql import Statement, load, of_rows

_SQL = load("distributed/bookings.sql")


def is_in_steps(connection: Connection) -> bool:
    return getattr(connection, "placement", None) is not None


async def end_in_steps(
    connection: Connection, statement: Statement, values: Mapping[str, Any], *, starts: bool = False
) -> list[Record]:
    """The rows that were ended; with `starts` their children are there, too."""
    async with connection.transaction():
        ended = await fetch(connection, statement, **values)
        if not ended:
            return ended
        await _book(connection, ended)
        if heard := [row for row in ended if row["events"] is not None]:
            await _note(connection, heard)
        if starts:
            parents = [row["id"] for row in ended]
            await execute(connection, _SQL["start_children"], ended=parents, **values)
    return ended


async def _book(connection: Connection, ended: Sequence[Record]) -> None:
    """A row for each shard, all in one command: each would be planned twice."""
    by_shard: dict[ShardId, list[Record]] = {}
    for row in ended:
        by_shard.setdefault(row["shard"], []).append(row)
    row = _SQL["book_end"]
    values = [value for one in by_shard.items() for value in row.bind(**_booking(*one))]
    await connection.execute(of_rows(row, len(by_shard)), *values)


def _booking(shard: ShardId, rows: Sequence[Record]) -> dict[str, Any]:
    def column(name: str) -> list[Any]:
        return [row[name] for row in rows]

    is_plain = "is_end" not in rows[0]  # successes: each is an end, and billed as it ran
    return {
        "shard": shard,
        "tenants": column("tenant"),
        "pools": column("pool"),
        "types": column("type"),
        "billed": column("billed_us"),
        "unbilled": None if is_plain else column("unbilled_us"),
        "ends": None if is_plain else column("is_end"),
        "attempts": None if is_plain else column("is_attempt"),
        "ended": None if is_plain else column("ended_at"),
    }


async def _note(connection: Connection, heard: Sequence[Record]) -> None:
    rows = [
        (
            row["shard"],
            row["tenant"],
            row["id"],
            row["type"],
            row["attempts"],
            row["pool"],
            row["billed_us"],
        )
        for row in heard
    ]
    names = ("shards", "tenants", "ids", "types", "attempts", "pools", "rans_us")
    await execute(connection, _SQL["note_ends"], **arrays.columns(rows, *names))
