"""A pool whose connections stay at hand between uses, and whose uses all have a deadline.

The driver's pool spends a task, a timer and a turn of the event loop on every return of a
connection. That is more than a small commit takes, and whoever waits for the commit waits for it
too. So a connection whose use ended well is kept here, and goes back to the pool only when it
broke, when its use failed or was cut short, or when somebody waits for one.

A store that takes bytes and never answers must cost nobody more than the use's deadline. The
driver's own time-outs ask the server to cancel, over the same dead link, and wait for that; here a
use that is over time loses its connection at once. While the store is known to be away, a use is
refused before it begins. A use inside a use is refused too: a few of those, and a pool waits for
itself.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

import asyncpg

STILL_SECONDS = 0.1  # a look that comes later than this was held up by us, not by the store
LOOK_SECONDS = 0.1  # how often deadlines are looked at: a timer for each use would cost more
RELEASE_SECONDS = 3.0  # for a rollback of what a failed use left open


class StoreAway(TimeoutError):
    """The store does not answer."""


class NoConnection(StoreAway):
    """There is no connection to be had, so nothing was asked of the store."""


class ConnectionCache:
    def __init__(
        self, pool: Any, wait_seconds: float, on_read_only: Callable[[], Awaitable[None]]
    ) -> None:
        self._pool = pool
        self._on_read_only = on_read_only  # one connection is: others, of any pool, may be, too
        self._wait_seconds = wait_seconds  # for a connection, unless a use is less patient
        self._kept: list[Any] = []
        self._uses: set[Use] = set()
        self._look: asyncio.TimerHandle | None = None
        self._look_at = 0.0  # when it is due, by the event loop's clock
        self._is_closing = False
        self._is_away = False
        self._generation = 0  # of connections: those of an earlier one are not kept
        self.waiting = 0  # uses that have no connection yet

    def use(self, seconds: float | None) -> Use:
        """`async with`: a connection, for as long as the block takes and no longer than this."""
        return Use(self, seconds)

    def begin(self, use: Use) -> Any:
        """A connection that is at hand, or None."""
        if self._is_away:
            raise NoConnection
        self._uses.add(use)
        use.generation = self._generation
        while self._kept:
            connection = self._kept.pop()
            if _is_sound(connection):
                return connection
            _terminate(connection)
        return None

    def mind(self, loop: asyncio.AbstractEventLoop) -> None:
        """See to it that somebody looks at deadlines."""
        if self._look is None:
            self._look_at = loop.time() + LOOK_SECONDS
            self._look = loop.call_at(self._look_at, self._cut_late_ones, loop)

    def _cut_late_ones(self, loop: asyncio.AbstractEventLoop) -> None:
        """A process that stood still finds every deadline over, and the answers not read yet: that
        time is not counted."""
        now = loop.time()
        still = now - self._look_at
        if still > STILL_SECONDS:
            for use in self._uses:
                use.ends_at += still
        for use in [use for use in self._uses if use.ends_at <= now]:
            use.cut()
        self._look = None
        if self._uses:
            self.mind(loop)

    async def wait(self, seconds: float | None) -> Any:
        wait_seconds = self._wait_seconds if seconds is None else min(seconds, self._wait_seconds)
        self.waiting += 1
        try:
            async with asyncio.timeout(wait_seconds):
                connection = await self._pool.acquire()
        except TimeoutError:
            raise NoConnection(f"none within {wait_seconds:g} s") from None
        finally:
            self.waiting -= 1
        if self._is_away:  # since a moment ago
            await self.give_back(connection, away := NoConnection())
            raise away
        return connection

    def under_way(self) -> set[Use]:
        """Uses that have begun, also those that wait for a connection."""
        return set(self._uses)

    def end(self, use: Use, connection: Any) -> bool:
        """Keep the connection of a use that went well; False when the pool must have it back."""
        self._uses.discard(use)
        is_wanted = self.waiting or self._is_closing  # by somebody, or by the pool
        if connection is None or is_wanted or self._is_away or not _is_sound(connection):
            return False
        if use.generation != self._generation:
            return False  # the pool, too, knows that it is too old
        self._kept.append(connection)
        return True

    async def give_back(self, connection: Any, error: BaseException | None) -> None:
        if _is_in_doubt(error):
            _terminate(connection)
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            await self._on_read_only()
        try:
            await self._pool.release(connection, timeout=RELEASE_SECONDS)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            _terminate(connection)  # how the use went is known, and that stands

    async def away(self) -> None:
        """The store does not answer: end what waits for it, and refuse what would."""
        self._is_away = True
        for use in list(self._uses):
            use.cut()
        await self.renew()

    def back(self) -> None:
        self._is_away = False

    async def renew(self) -> None:
        """Use none of these connections again: they may lead to the wrong server."""
        self._generation += 1
        while self._kept:
            _terminate(self._kept.pop())
        await self._pool.expire_connections()

    async def close(self) -> None:
        """Waits for uses that are under way."""
        self._is_closing = True
        while self._kept:
            await self._pool.release(self._kept.pop())
        await self._pool.close()

    def terminate(self) -> None:
        self._kept.clear()
        self._pool.terminate()


class Use:
    """A class, because it is hot: a generator's context manager takes three times as long."""

    __slots__ = ("_connection", "_is_cut", "_pool", "_seconds", "_task", "ends_at", "generation")

    def __init__(self, pool: ConnectionCache, seconds: float | None) -> None:
        self._pool = pool
        self._seconds = seconds
        self._connection: Any = None
        self._task: Any = None
        self.ends_at = inf
        self.generation = 0
        self._is_cut = False

    def begun(self, seconds: float) -> None:
        """Whoever asks has waited so long for a turn: its time is that much shorter."""
        if self._seconds is not None:
            self._seconds = max(self._seconds - seconds, LOOK_SECONDS)

    async def __aenter__(self) -> Any:
        self._task = task = asyncio.current_task()
        if task in _users:
            on_nested(f"{task!r} wants a connection while it has one")
        connection = self._pool.begin(self)
        if self._seconds is not None:
            loop = asyncio.get_running_loop()
            self.ends_at = loop.time() + self._seconds
            self._pool.mind(loop)
        if connection is None:
            try:
                connection = await self._pool.wait(self._seconds)
            except BaseException:
                self._pool.end(self, None)
                raise
        self._connection = connection
        _users[task] = self
        return connection

    def cut(self) -> None:
        """End the use: whatever waits for the connection hears at once that it broke."""
        self._is_cut = True
        if self._connection is not None:
            _terminate(self._connection)

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        _users.pop(self._task, None)
        connection, self._connection = self._connection, None
        if not self._pool.end(self, connection if error is None else None):
            await self._pool.give_back(connection, error)
        if isinstance(error, Exception):
            self._explain(error)

    def _explain(self, error: Exception) -> None:
        """Raise what the driver's error means, where it does not say."""
        if self._is_cut:
            raise StoreAway("no answer in time") from error
        if isinstance(error, asyncpg.InternalServerError) and "connection" in str(error):
            raise StoreAway(f"a node of the store is away: {error}") from error


#: Tasks that hold a connection now.
_users: dict[Any, Use] = {}


def _warn(what: str) -> None:
    warnings.warn(what, RuntimeWarning, stacklevel=3)


#: Told of a use inside a use; tests make it an error wherever it happens.
on_nested: Callable[[str], None] = _warn


class Deadline:
    """`async with`: cuts a connection of one's own when the block takes longer than this.

    As for uses, time in which the process stood still is not counted: the answer may be there, and
    nobody has read it. After it, a connection that is not to be trusted any more is closed.
    """

    def __init__(self, connection: Any, seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds
        self._is_over = False

    async def __aenter__(self) -> Any:
        self._loop = asyncio.get_running_loop()
        self._ends_at = self._loop.time() + self._seconds
        self._look_again()
        return self._connection

    def _look_again(self) -> None:
        self._look_at = min(self._loop.time() + LOOK_SECONDS, self._ends_at)
        self._timer = self._loop.call_at(self._look_at, self._look)

    def _look(self) -> None:
        now = self._loop.time()
        still = now - self._look_at
        if still > STILL_SECONDS:
            self._ends_at += still
        if now < self._ends_at:
            self._look_again()
            return
        self._is_over = True
        _terminate(self._connection)

    async def __aexit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._timer.cancel()
        if _is_in_doubt(error):
            _terminate(self._connection)
        if self._is_over and isinstance(error, Exception):
            raise StoreAway(f"no answer within {self._seconds:g} s") from error


def _is_sound(connection: Any) -> bool:
    try:
        return not (connection.is_closed() or connection.is_in_transaction())
    except asyncpg.InterfaceError:  # it broke, and the pool took it back by itself
        return False


def _is_in_doubt(error: BaseException | None) -> bool:
    """Whether the connection may be dead, or leads to a server that can no longer be written to."""
    if error is None:
        return False
    stale = (TimeoutError, OSError, asyncpg.ReadOnlySQLTransactionError)
    return not isinstance(error, Exception) or isinstance(error, stale)


def _terminate(connection: Any) -> None:
    try:
        connection.terminate()
    except asyncpg.InterfaceError:
        return  # the pool has it back by now
