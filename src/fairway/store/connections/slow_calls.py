"""Notices hot statements that take far too long, and finds out how they are carried out.

A hot statement takes milliseconds. One that takes a second waits for a lock or has a bad plan, and
whoever is told may look: `explain` says how PostgreSQL would carry it out now, `analyse_today`
renews what it believes of today's jobs, and with that every plan on them. Nothing is looked at
while a statement is quick: two readings of the event loop's clock are all it costs.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import asyncpg

from fairway.store.connections.row_security import AsksAs
from fairway.store.sql import Statement

SLOW_SECONDS = 1.0
PLAN_LENGTH_MAX = 4000  # characters of a plan that a log can bear
ANALYSE_LOCK_SECONDS = 2


class SlowCall(NamedTuple):
    statement: Statement
    seconds: float


class SlowCalls:
    """Whom the connections of one pool tell."""

    def __init__(self) -> None:
        self.on_slow: Callable[[SlowCall], None] = lambda call: None


class WatchedConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver ships no types
    """A connection that knows whom to tell."""

    slow_calls: SlowCalls | None = None
    asks_as: AsksAs


def now() -> float:
    return get_running_loop().time()


def look_back(connection: Any, statement: Statement, began: float) -> None:
    """To be called when a statement is over, well or badly."""
    seconds = now() - began
    if seconds >= SLOW_SECONDS:
        calls: SlowCalls | None = getattr(connection, "slow_calls", None)
        if calls is not None:
            calls.on_slow(SlowCall(statement, seconds))


async def explain(connection: Any, statement: Statement, settings: Mapping[str, str]) -> str:
    """Its generic plan under these settings and present statistics, cut to a length."""
    values = ", ".join("NULL" for _ in statement.parameters)  # a generic plan is that of any
    async with connection.transaction():
        for name, value in settings.items():
            await connection.execute(f"SET LOCAL {name} = '{value}'")
        await connection.execute(f"PREPARE explained AS {statement.text}")
        try:
            call = f"EXECUTE explained({values})" if values else "EXECUTE explained"
            async with connection.transaction():  # what fails here must not keep the name
                rows = await connection.fetch(f"EXPLAIN {call}")
        finally:
            await connection.execute("DEALLOCATE explained")
    return "\n".join(row[0] for row in rows)[:PLAN_LENGTH_MAX]


async def analyse_today(connection: Any) -> str | None:
    """Answers the name of the partition; None when there is none, or somebody else is at it."""
    name: str | None = await connection.fetchval(
        "SELECT to_regclass('jobs_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'))::text"
    )
    if name is None:
        return None
    try:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL lock_timeout = '{ANALYSE_LOCK_SECONDS}s'")
            await connection.execute(f"ANALYZE {name}")
    except asyncpg.LockNotAvailableError:  # a vacuum, which will do as well
        return None
    return name
