"""Notices that the store does not answer, and that it does again.

A link can take bytes and never bring an answer. Without this, everybody who wants something of the
store would have to find that out alone, at the price of a whole deadline each. So a tiny question
is asked all the time, on a connection of its own. Two in a row without an answer, and the store is
away: whoever waits hears so, and new calls are refused at once. One answer, and it is back.

An error is an answer: a store that is shut, locked, full, read-only or out of connections says so
to everybody who asks, at once.
"""

from __future__ import annotations

from collections.abc import Callable

from fairway.runtime.telemetry import logger
from fairway.store.at_hand import Deadline
from fairway.store.database import DISCONNECTED, Connection, Database

log = logger("store")

REST_SECONDS = 0.4
REST_AWAY_SECONDS = 0.2
ANSWER_SECONDS = 0.9
MISSES_MAX = 2  # one may be our own: a process that was stopped for a while finds its timers over


class StoreWatch:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._misses = 0
        self.on_back: Callable[[], None] = lambda: None

    async def run_once(self, now_us: int) -> float:
        """Ask; a loop calls this."""
        silence = await self._ask()
        if silence is None:
            self._misses = 0
            if self._database.is_away:
                log.info("the store answers again")
                self._database.back()
                self.on_back()
            return REST_SECONDS
        self._misses += 1
        if self._misses >= MISSES_MAX and not self._database.is_away:
            log.error("the store does not answer", error=repr(silence))
            self._database.away()
        return REST_AWAY_SECONDS if self._database.is_away else 0.0

    async def _ask(self) -> BaseException | None:
        """What went wrong, if no answer came."""
        try:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._database.dedicated("fairway-watch", ANSWER_SECONDS)
            async with Deadline(self._connection, ANSWER_SECONDS):
                await self._connection.execute("SELECT 1")
        except TimeoutError as error:
            return error
        except DISCONNECTED:
            return None  # whoever asks hears of it as fast as we did
        return None
