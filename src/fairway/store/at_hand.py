"""A pool whose connections stay at hand between uses, for as long as they are sound.

The driver's pool spends a task, a timer and a turn of the event loop on every return of a
connection. That is more than a small commit takes, and whoever waits for the commit waits for it
too. So a connection whose use ended well is kept here, and goes back to the pool only when it
broke, when its use failed or was cut short, or when somebody waits for one.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import asyncpg


class AtHand:
    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._kept: list[Any] = []
        self._is_closing = False
        self.waiting = 0  # uses that have no connection yet

    def use(self) -> Use:
        """`async with`: a connection, for as long as the block takes."""
        return Use(self)

    async def take(self) -> Any:
        while self._kept:
            connection = self._kept.pop()
            if _is_sound(connection):
                return connection
            await self._pool.release(connection)
        self.waiting += 1
        try:
            return await self._pool.acquire()
        finally:
            self.waiting -= 1

    async def give_back(self, connection: Any, *, is_sound: bool) -> None:
        is_wanted = self.waiting or self._is_closing  # by somebody, or by the pool
        if is_sound and not is_wanted and _is_sound(connection):
            self._kept.append(connection)
        else:
            await self._pool.release(connection)

    async def close(self) -> None:
        """Waits for uses that are under way."""
        self._is_closing = True
        while self._kept:
            await self._pool.release(self._kept.pop())
        await self._pool.close()

    def terminate(self) -> None:
        self._kept.clear()
        self._pool.terminate()


def _is_sound(connection: Any) -> bool:
    try:
        return not (connection.is_closed() or connection.is_in_transaction())
    except asyncpg.InterfaceError:  # it broke, and the pool took it back by itself
        return False


class Use:
    """A class, because it is hot: a generator's context manager takes three times as long."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: AtHand) -> None:
        self._pool = pool
        self._connection: Any = None

    async def __aenter__(self) -> Any:
        self._connection = await self._pool.take()
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._pool.give_back(self._connection, is_sound=kind is None)
