"""Connections to PostgreSQL: pools with time-outs, and the three ways to run a statement.

Two pools: *hot* for the statements of the job path, whose plans are pinned to index lookups, and
*calm* for people's questions and upkeep. No transaction here is ever long.
"""

from __future__ import annotations

import ssl
from typing import Any, TypeAlias

import asyncpg

from fairway.store.at_hand import AtHand, Use
from fairway.store.slow_calls import SlowCalls, WatchedConnection, look_back, now
from fairway.store.sql import Statement

Connection: TypeAlias = Any  # asyncpg ships no types; one alias keeps signatures honest
Record: TypeAlias = Any

#: A hot statement goes from the batch to the rows by key, whatever the planner thinks of a table's
#: size this minute: a plan made while a partition was empty must not become a scan when it is full.
#: The statements help: they are written so that a look-up by key per item of the batch is the only
#: way that is not switched off here (decisions 0004 and 0021). An index is dearer than a place.
PINNED_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "enable_material": "off",
    "cpu_index_tuple_cost": "100",
    "jit": "off",
}

#: People's questions may join as they like, but a partition that was empty when they were planned
#: is not read from end to end when it is full.
CALM_PLANS = {"jit": "off", "enable_seqscan": "off"}

#: What every connection obeys: no statement or transaction may hold the horizon for long.
TIME_LIMITS = {
    "statement_timeout": "30s",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "10s",
}


class Database:
    """The pools of one process. Open with `Database.open(...)`, close with `close()`."""

    def __init__(self, dsn: str, hot: Any, calm: Any, slow_calls: SlowCalls) -> None:
        self.dsn = dsn
        self.slow_calls = slow_calls  # on the hot pool
        self._hot = AtHand(hot)
        self._calm = AtHand(calm)

    @classmethod
    async def open(cls, dsn: str, *, hot_size: int = 6, calm_size: int = 4) -> Database:
        slow_calls = SlowCalls()
        hot = await _pool(dsn, "fairway-hot", hot_size, PINNED_PLANS, slow_calls.watch)
        calm = await _pool(dsn, "fairway-calm", calm_size, CALM_PLANS)
        return cls(dsn, hot, calm, slow_calls)

    def hot(self) -> Use:
        return self._hot.use()

    def calm(self) -> Use:
        return self._calm.use()

    @property
    def waiting(self) -> int:
        """Calls that want a connection and have none yet."""
        return self._hot.waiting + self._calm.waiting

    async def dedicated(self) -> Connection:
        """A connection of its own, for work that must never wait for a pool (leadership)."""
        return await asyncpg.connect(
            self.dsn,
            server_settings={"application_name": "fairway-leader", **TIME_LIMITS},
            timeout=10,
            command_timeout=10,
        )

    async def close(self) -> None:
        await self._hot.close()
        await self._calm.close()

    def terminate(self) -> None:
        """Close without waiting for anybody."""
        self._hot.terminate()
        self._calm.terminate()


async def _pool(dsn: str, name: str, size: int, settings: dict[str, str], init: Any = None) -> Any:
    return await asyncpg.create_pool(
        dsn,
        connection_class=WatchedConnection,
        init=init,
        min_size=0,
        max_size=size,
        max_inactive_connection_lifetime=0,
        # The driver's own reset is one more round trip for every use of a connection.
        reset=_leave_clean,
        command_timeout=40,
        timeout=10,
        server_settings={"application_name": name, **TIME_LIMITS, **settings},
    )


async def _leave_clean(connection: Connection) -> None:
    """Nothing here leaves state on a connection, except a transaction that was cut short."""
    if connection.is_in_transaction():
        await connection.execute("ROLLBACK")


async def fetch(connection: Connection, statement: Statement, **values: Any) -> list[Record]:
    began = now()
    try:
        rows: list[Record] = await connection.fetch(statement.text, *statement.bind(**values))
        return rows
    finally:
        look_back(connection, statement, began)


async def fetch_row(connection: Connection, statement: Statement, **values: Any) -> Record | None:
    began = now()
    try:
        return await connection.fetchrow(statement.text, *statement.bind(**values))
    finally:
        look_back(connection, statement, began)


async def execute(connection: Connection, statement: Statement, **values: Any) -> int:
    """Run a statement that returns no rows; answers how many rows it touched."""
    began = now()
    try:
        tag: str = await connection.execute(statement.text, *statement.bind(**values))
        return int(tag.rsplit(" ", 1)[-1])
    finally:
        look_back(connection, statement, began)


#: What a store that is away, restarting or cut off raises; callers answer "try again".
DISCONNECTED = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a COPY whose connection broke: the rollback finds it unfinished
    ConnectionError,
    FileNotFoundError,
    TimeoutError,
    OSError,
    ssl.SSLError,
)
