"""Pages of a tenant's log, on and on from a position; or from its end, for people.

Pages that a tenant asks for are read one at a time, and at the pace of its streams: each keeps the
next one waiting for as long as its events are worth. Who sends very many at once is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from fairway.core.events.event import Event
from fairway.core.events.event_filter import EventFilter
from fairway.core.ids import TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.loops import WorkInParts
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.connections.query_slots import QuerySlotLimits, QuerySlots
from fairway.store.events.log import EventPage, last_before, read_events

EVENTS_AT_ONCE = 1_000  # read in one go
PAGES_LOOKED_AT_MAX = 10  # of one question, where a filter lets few through
POSITION_MAX = 1 << 62
EVENTS_PER_SECOND = 20_000  # of one tenant's pages, on one server
PAGES = QuerySlotLimits(1_000_000, 1, 32)  # one at a time of a tenant's; of all, the pool's own


class FoundEvents(NamedTuple):
    """What a filter let through, and how far was looked."""

    events: list[Event]
    cursor: int  # look on from here
    trimmed_to: int  # positions up to it are gone by retention; 0: none
    last: int = 0  # the newest position there was


class EventReader:
    def __init__(self, database: Database, *, tenant_shards: TenantShards) -> None:
        self._database = database
        self._tenant_shards = tenant_shards
        self._turns = QuerySlots(database.wait_seconds, PAGES)

    async def page(self, tenant: TenantId, after: int, limit: int) -> EventPage:
        """The next events after a position, at most so many."""
        shard = self._tenant_shards.of(tenant)
        async with told_if_away, self._database.quick(tenant) as connection:
            self._tenant_shards.still_takes(tenant, shard)  # half of it would look like all of it
            return await read_events(connection, shard, tenant, after, limit)

    async def following(
        self, tenant: TenantId, wanted: EventFilter, after: int, limit: int
    ) -> FoundEvents:
        """Oldest first. The cursor moves on even where nothing is let through."""
        found, work = FoundEvents([], after, 0), WorkInParts()
        async with self._turn(tenant) as looked_at:
            for _ in range(PAGES_LOOKED_AT_MAX):
                page = await self.page(tenant, found.cursor, _size(wanted, limit))
                looked_at.append(len(page.events))
                begin = max(found.cursor, page.trimmed_to)
                cursor = _take(found.events, page.events, wanted, limit, begin)
                found = FoundEvents(found.events, cursor, page.trimmed_to, page.last)
                if len(found.events) == limit or cursor >= page.last:
                    break
                await work.let_others()
        return found

    async def newest(
        self, tenant: TenantId, wanted: EventFilter, below: int | None, limit: int
    ) -> FoundEvents:
        """Newest first, below a position. The cursor is the lowest that was looked at."""
        async with self._turn(tenant) as looked_at:
            end = await self.page(tenant, POSITION_MAX, 1)
            cursor = end.last + 1 if below is None else min(below, end.last + 1)
            found = FoundEvents([], cursor, end.trimmed_to, end.last)
            work = WorkInParts()
            for _ in range(PAGES_LOOKED_AT_MAX):
                size = min(_size(wanted, limit), found.cursor - found.trimmed_to - 1)
                if size <= 0 or len(found.events) == limit:
                    break
                page = await self.page(tenant, found.cursor - 1 - size, size)
                looked_at.append(len(page.events))
                newest = [one for one in reversed(page.events) if one.position < found.cursor]
                lowest = found.cursor - size
                if not newest:
                    lowest = await self._beyond_gap(tenant, lowest, found.trimmed_to + 1)
                cursor = _take(found.events, newest, wanted, limit, lowest)
                found = found._replace(cursor=cursor)
                await work.let_others()
        return found

    async def _beyond_gap(self, tenant: TenantId, below: int, first: int) -> int:
        """Where to look on when nothing stands where it should: a restore left positions out."""
        shard = self._tenant_shards.of(tenant)
        async with told_if_away, self._database.quick(tenant) as connection:
            self._tenant_shards.still_takes(tenant, shard)
            last = await last_before(connection, shard, tenant, below)
        return first if last is None else last + 1

    @asynccontextmanager
    async def _turn(self, tenant: TenantId) -> AsyncIterator[list[int]]:
        """For one question; the next one's comes later by what was looked at, this one's not."""
        await self._turns.take(tenant)
        looked_at: list[int] = []
        try:
            yield looked_at
        finally:
            rest_seconds = sum(looked_at) / EVENTS_PER_SECOND
            asyncio.get_running_loop().call_later(rest_seconds, self._turns.give_back, tenant)


def _size(wanted: EventFilter, limit: int) -> int:
    return limit if wanted.is_open else EVENTS_AT_ONCE


def _take(
    found: list[Event], events: Iterable[Event], wanted: EventFilter, limit: int, cursor: int
) -> int:
    """Add what is let through until there are enough; answers the last position looked at."""
    for event in events:
        if len(found) == limit:
            break
        cursor = event.position
        if wanted.matches(event):
            found.append(event)
    return cursor
