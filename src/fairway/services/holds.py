"""Keeps the dispatcher told of what must not start: pauses here, and whatever else sets holds.

Each source says all of its holds at once; they are joined and handed on when something changed. A
pause made on another server is seen within `REFRESH_SECONDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import chain

from fairway.core.errors import LimitReached, Unavailable
from fairway.core.holds import Hold, Holds
from fairway.runtime.telemetry import logger
from fairway.services.dispatcher import Dispatcher
from fairway.store import tiers as store
from fairway.store.database import DISCONNECTED, Connection, Database

log = logger("holds")

REFRESH_SECONDS = 2.0
PAUSES = "pauses"
TENANT_PAUSES_MAX = 100  # made by itself: every server reads all pauses, again and again


class HoldKeeper:
    def __init__(self, database: Database, dispatcher: Dispatcher) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._by_source: dict[str, tuple[Hold, ...]] = {}
        self._one_reads = asyncio.Lock()

    async def run_once(self, now_us: int) -> float:
        # One at a time: what was read before a pause must not be told after it.
        async with self._one_reads, self._database.calm() as connection:
            self.tell(PAUSES, await store.all_pauses(connection))
        return REFRESH_SECONDS

    def tell(self, source: str, holds: Iterable[Hold]) -> None:
        """All holds of one source, in place of those it named before."""
        self._by_source[source] = tuple(holds)
        joined = Holds(chain.from_iterable(self._by_source.values()))
        if not joined.says_the_same(self._dispatcher.backlog.holds):
            self._dispatcher.set_holds(joined)

    async def pauses(self) -> tuple[Hold, ...]:
        async with self._calm() as connection:
            return tuple(await store.all_pauses(connection))

    async def pause(self, hold: Hold, pauses_max: int | None = None) -> None:
        """No job of these streams starts; those that run, run on. The tenant may have so many."""
        async with self._calm() as connection:
            if pauses_max is not None:
                others = await store.count_other_pauses(connection, hold)
                if others >= pauses_max:
                    raise LimitReached(
                        f"There are {others} pauses already, as many as a tenant may have. Resume"
                        " some, or pause all of a pool.",
                        code="TOO_MANY_PAUSES",
                    )
            await store.pause(connection, *hold[:3])
        await self._told()

    async def resume(self, hold: Hold) -> bool:
        """Whether it was paused."""
        async with self._calm() as connection:
            was_paused = await store.resume(connection, *hold[:3])
        await self._told()
        return was_paused

    async def _told(self) -> None:
        """It is on disk; should the store go away just now, the loop tells of it later."""
        try:
            await self.run_once(0)
        except DISCONNECTED as error:
            log.warning("a change of pauses is told later", error=repr(error))

    @asynccontextmanager
    async def _calm(self) -> AsyncIterator[Connection]:
        try:
            async with self._database.people() as connection:
                yield connection
        except DISCONNECTED as error:
            raise Unavailable() from error
