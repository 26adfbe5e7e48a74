"""Pauses of a tenant, a job type or a pool: made, ended, listed, and told to the holds here.

A pause made on another server is seen within `REFRESH_SECONDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from fairway.core.audit import PLATFORM, Act, Actor
from fairway.core.backlog.holds import EVERY_TENANT, Hold
from fairway.core.errors import LimitReached
from fairway.core.ids import TenantId
from fairway.runtime.telemetry import logger
from fairway.services.registry.audit_log import USUAL_LOG, AuditLog
from fairway.services.registry.type_names import NO_TYPE
from fairway.services.restraints.holds import HoldRegistry
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import DISCONNECTED, Connection, Database
from fairway.store.connections.query_slots import SlowUse
from fairway.store.connections.row_security import UseAs
from fairway.store.registry import tiers as store

log = logger("pauses")

REFRESH_SECONDS = 2.0
PAUSES = "pauses"
TENANT_PAUSES_MAX = 100  # made by itself: every server reads all pauses, again and again


class Pauser(NamedTuple):
    """Who pauses or resumes, and what, in words."""

    actor: Actor = PLATFORM
    subject: str = ""
    asker: TenantId | None = None  # the tenant, if it is one: it may have so many


_HOUSE = Pauser()


class Pauses:
    def __init__(
        self, database: Database, holds: HoldRegistry, audit_log: AuditLog = USUAL_LOG
    ) -> None:
        self._database = database
        self._audit_log = audit_log
        self._holds = holds
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
                    self._holds.replace(PAUSES, await store.all_pauses(connection))
                self._looks_done = begun
        return REFRESH_SECONDS

    async def of(self, asker: TenantId | None = None) -> tuple[Hold, ...]:
        """A tenant's own; all, when it is not a tenant that asks."""
        async with told_if_away, self._database.asked(asker) as connection:
            if asker is None:
                return tuple(await store.all_pauses(connection))
            return tuple(await store.pauses_of(connection, asker))

    def of_everybody(self) -> tuple[Hold, ...]:
        """Those that name no tenant, as this server last read them."""
        return self._holds.of(PAUSES, EVERY_TENANT)

    async def pause(
        self, hold: Hold, by: Pauser = _HOUSE, *, also: Sequence[TenantId] = ()
    ) -> None:
        """No job of these streams starts; those that run, run on. A tenant may have so many.
        `also`: the same for its other parts, where it has several: all of them or none."""
        async with (
            told_if_away,
            self._asked(by.asker, also) as connection,
            connection.transaction(),
        ):
            if by.asker is not None:
                await _check_room(connection, hold)
            is_new = False
            for tenant in (hold.tenant, *also):
                is_new |= await store.pause(connection, tenant, hold.type, hold.pool)
            if is_new:
                sides = _paused(False), _paused(True)
                act = Act("pause", by.subject, hold.tenant or None, *sides)
                await self._audit_log.add(connection, by.actor, act)
        await self._told()

    async def check_room(self, asker: TenantId) -> None:
        """Raises when this tenant may not make one more."""
        async with told_if_away, self._database.asked(asker) as connection:
            await _check_room(connection, Hold(asker, NO_TYPE))

    async def resume(
        self, hold: Hold, by: Pauser = _HOUSE, *, also: Sequence[TenantId] = ()
    ) -> bool:
        """Whether it was paused."""
        async with (
            told_if_away,
            self._asked(by.asker, also) as connection,
            connection.transaction(),
        ):
            was_paused = False
            for tenant in (hold.tenant, *also):
                was_paused |= await store.resume(connection, tenant, hold.type, hold.pool)
            if was_paused:
                sides = _paused(True), _paused(False)
                act = Act("resume", by.subject, hold.tenant or None, *sides)
                await self._audit_log.add(connection, by.actor, act)
        if was_paused:
            await self._told()
        return was_paused

    def _asked(self, asker: TenantId | None, also: Sequence[TenantId]) -> UseAs | SlowUse:
        """A tenant's own connection writes rows of one part."""
        if asker is None or not also:
            return self._database.asked(asker)
        return self._database.writing(asker)

    async def _told(self) -> None:
        """It is on disk; should the store go away just now, the loop tells of it later."""
        try:
            await self.run_once(0)
        except DISCONNECTED as error:
            log.warning("a change of pauses is told later", error=repr(error))


def _paused(is_paused: bool) -> dict[str, bool]:
    return {"paused": is_paused}


async def _check_room(connection: Connection, hold: Hold) -> None:
    others = await store.count_other_pauses(connection, hold)
    if others >= TENANT_PAUSES_MAX:
        raise LimitReached(
            f"There are {others} pauses already, as many as a tenant may have. Resume some, or"
            " pause all of a pool.",
            code="TOO_MANY_PAUSES",
        )
