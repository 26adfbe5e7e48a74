"""Notices hot statements that take far too long, and finds out how they are carried out.

A hot statement takes milliseconds. One that takes a second waits for a lock or has a bad plan; it
is remembered here, and whoever waits for `news` may look: `explain` says how PostgreSQL would carry
it out now, `analyse_today` renews what it believes of today's jobs, and with that every plan on
them. Nothing is looked at while a statement is quick: two readings of the event loop's clock are
all it costs.
"""

from __future__ import annotations

from asyncio import Event, get_running_loop
from collections.abc import Mapping
from typing import Any, NamedTuple

import asyncpg

from fairway.store.connections.known_types import TypedConnection
from fairway.store.connections.row_security import AsksAs
from fairway.store.sql import Statement

SLOW_SECONDS = 1.0
PLAN_LENGTH_MAX = 4000  # characters of a plan that a log can bear
ANALYSE_LOCK_SECONDS = 2


class SlowCall(NamedTuple):
    statement: Statement
    seconds: float


class SlowCalls:
    """Slow statements of the connections of one pool, until somebody looks at them."""

    def __init__(self) -> None:
        self.news = Event()
        self._slowest: dict[str, SlowCall] = {}  # by name
        self._counts: dict[str, int] = {}

    def note(self, call: SlowCall) -> None:
        """Called on the job path: remembers, and lets somebody else look."""
        name = call.statement.name
        self._counts[name] = self._counts.get(name, 0) + 1
        known = self._slowest.get(name)
        if known is None or known.seconds < call.seconds:
            self._slowest[name] = call
        self.news.set()

    def take(self) -> list[tuple[SlowCall, int]]:
        """The slowest of each statement since the last look, with how often it was slow."""
        slowest, counts = self._slowest, self._counts
        self._slowest, self._counts = {}, {}
        return [(call, counts[name]) for name, call in slowest.items()]


class WatchedConnection(TypedConnection):
    """A connection that knows whom to tell, and as whom it asks."""

    slow_calls: SlowCalls | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asks_as = AsksAs()


def watched_by(calls: SlowCalls) -> type[WatchedConnection]:
    """Connections of one pool: the driver makes them, so what they know is in their class."""

    class Watched(WatchedConnection):
        slow_calls = calls

    return Watched


def now() -> float:
    return get_running_loop().time()


def look_back(connection: Any, statement: Statement, began: float) -> None:
    """To be called when a statement is over, well or badly."""
    seconds = now() - began
    if seconds >= SLOW_SECONDS:
        calls: SlowCalls | None = getattr(connection, "slow_calls", None)
        if calls is not None:
            calls.note(SlowCall(statement, seconds))


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
