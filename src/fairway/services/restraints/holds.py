"""Keeps the dispatcher told of what must not start: pauses here, and whatever else sets holds.

Each source says all of its holds, or all that name a tenant, at once; they are joined and handed on
when something changed. A pause made on another server is seen within `REFRESH_SECONDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from fairway.core.backlog.holds import Hold
from fairway.core.errors import LimitReached
from fairway.runtime.telemetry import logger
from fairway.services.dispatch.dispatcher import Dispatcher
from fairway.services.registry.type_names import NO_TYPE
from fairway.services.transient_errors import told_if_away
from fairway.store import tiers as store
from fairway.store.connections.database import DISCONNECTED, Connection, Database

log = logger("holds")

REFRESH_SECONDS = 2.0
PAUSES = "pauses"
TENANT_PAUSES_MAX = 100  # made by itself: every server reads all pauses, again and again


class HoldRegistry:
    def __init__(self, database: Database, dispatcher: Dispatcher) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._by_source: dict[str, dict[int, tuple[Hold, ...]]] = {}  # then by tenant
        self._one_reads = asyncio.Lock()
        self._looks_asked = 0
        self._looks_done = 0  # of those asked for

    async def run_once(self, now_us: int) -> float:
        self._looks_asked += 1
        mine = self._looks_asked
        # One at a time: what was read before a pause must not be told after it. Who finds that a
        # look began after it came has nothing to add: however many pause, others' are heard soon.
        async with self._one_reads:
            if self._looks_done < mine:
                begun = self._looks_asked
                async with self._database.background() as connection:
                    self.replace(PAUSES, await store.all_pauses(connection))
                self._looks_done = begun
        return REFRESH_SECONDS

    def replace(self, source: str, holds: Iterable[Hold]) -> None:
        """All holds of one source, in place of those it named before."""
        found: dict[int, list[Hold]] = {tenant: [] for tenant in self.tenants_of(source)}
        for hold in holds:
            found.setdefault(hold.tenant, []).append(hold)
        self.replace_for(source, {tenant: tuple(named) for tenant, named in found.items()})

    def replace_for(self, source: str, found: Mapping[int, tuple[Hold, ...]]) -> None:
        """All holds of one source that name these tenants; costs what these do, not what all do."""
        told = self._by_source.setdefault(source, {})
        changed = [tenant for tenant, holds in found.items() if told.get(tenant, ()) != holds]
        if not changed:
            return
        for tenant in changed:
            told[tenant] = found[tenant]
            if not found[tenant]:
                del told[tenant]
        before = self._dispatcher.holds()
        joined = before.with_those_of({tenant: self._all_of(tenant) for tenant in changed})
        if not joined.says_the_same(before):
            self._dispatcher.set_holds(joined)

    def _all_of(self, tenant: int) -> list[Hold]:
        return [hold for told in self._by_source.values() for hold in told.get(tenant, ())]

    def tenants_of(self, source: str) -> list[int]:
        """Whom holds of this source name; 0: all tenants."""
        return list(self._by_source.get(source, ()))

    async def pauses(self, asker: int | None = None) -> tuple[Hold, ...]:
        """A tenant's own; all, when it is not a tenant that asks."""
        async with told_if_away, self._database.asked(asker) as connection:
            if asker is None:
                return tuple(await store.all_pauses(connection))
            return tuple(await store.pauses_of(connection, asker))

    async def pause(self, hold: Hold, asker: int | None = None) -> None:
        """No job of these streams starts; those that run, run on. A tenant may have so many."""
        async with told_if_away, self._database.asked(asker) as connection:
            if asker is not None:
                await _check_room(connection, hold)
            await store.pause(connection, hold.tenant, hold.type, hold.pool)
        await self._told()

    async def check_room(self, asker: int) -> None:
        """Raises when this tenant may not make one more."""
        async with told_if_away, self._database.asked(asker) as connection:
            await _check_room(connection, Hold(asker, NO_TYPE))

    async def resume(self, hold: Hold, asker: int | None = None) -> bool:
        """Whether it was paused."""
        async with told_if_away, self._database.asked(asker) as connection:
            was_paused = await store.resume(connection, hold.tenant, hold.type, hold.pool)
        if was_paused:
            await self._told()
        return was_paused

    async def _told(self) -> None:
        """It is on disk; should the store go away just now, the loop tells of it later."""
        try:
            await self.run_once(0)
        except DISCONNECTED as error:
            log.warning("a change of pauses is told later", error=repr(error))


async def _check_room(connection: Connection, hold: Hold) -> None:
    others = await store.count_other_pauses(connection, hold)
    if others >= TENANT_PAUSES_MAX:
        raise LimitReached(
            f"There are {others} pauses already, as many as a tenant may have. Resume some, or"
            " pause all of a pool.",
            code="TOO_MANY_PAUSES",
        )
