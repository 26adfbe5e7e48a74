"""Keeps the dispatcher told of what must not start: pauses here, and whatever else sets holds.

Each source says all of its holds at once; they are joined and handed on when something changed. A
pause made on another server is seen within `REFRESH_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from fairway.core.errors import Unavailable
from fairway.core.holds import Hold, Holds
from fairway.services.dispatcher import Dispatcher
from fairway.store import tiers as store
from fairway.store.database import DISCONNECTED, Database

REFRESH_SECONDS = 2.0
PAUSES = "pauses"


class HoldKeeper:
    def __init__(self, database: Database, dispatcher: Dispatcher) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._by_source: dict[str, tuple[Hold, ...]] = {}

    async def run_once(self, now_us: int) -> float:
        async with self._database.calm() as connection:
            self.tell(PAUSES, await store.all_pauses(connection))
        return REFRESH_SECONDS

    def tell(self, source: str, holds: Iterable[Hold]) -> None:
        """All holds of one source, in place of those it named before."""
        self._by_source[source] = tuple(holds)
        joined = Holds(chain.from_iterable(self._by_source.values()))
        if not joined.says_the_same(self._dispatcher.backlog.holds):
            self._dispatcher.set_holds(joined)

    async def pauses(self) -> tuple[Hold, ...]:
        await self.run_once(0)
        return self._by_source[PAUSES]

    async def pause(self, hold: Hold) -> None:
        """No job of these streams starts; those that run, run on."""
        try:
            async with self._database.calm() as connection:
                await store.pause(connection, *hold[:3])
        except DISCONNECTED as error:
            raise Unavailable() from error
        await self.run_once(0)

    async def resume(self, hold: Hold) -> bool:
        """Whether it was paused."""
        try:
            async with self._database.calm() as connection:
                was_paused = await store.resume(connection, *hold[:3])
        except DISCONNECTED as error:
            raise Unavailable() from error
        await self.run_once(0)
        return was_paused
