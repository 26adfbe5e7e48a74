"""Who follows the event log on this server: streams, sockets and requests that wait.

One reader for all of them. For tenants with a follower it asks where their logs end, in one
statement for hundreds, every fifth of a second; what is sequenced in this process is known at once
(`moved`). What is new of a tenant's log is read once, by whichever follower comes first, and kept
for the others, so many events a tenant and so many in all. A follower that is slower than that
reads from the store by its own position: nobody has a queue, so nobody's can grow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fairway.core.events.event import Event
from fairway.core.events.event_filter import EventFilter
from fairway.core.events.recent import RecentEvents
from fairway.core.ids import TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.runtime.loops import pause, wait
from fairway.services.events.event_reader import EventReader
from fairway.store.connections.database import Database
from fairway.store.events.log import EventPage, read_heads

TICK_SECONDS = 0.2
IDLE_SECONDS = 30.0  # nobody follows; who comes wakes the loop
HEADS_AT_ONCE = 500  # tenants in one statement
KEPT_OF_TENANT, KEPT_MAX = 512, 20_000  # events in memory
AT_ONCE = 200  # events that a follower is given in one go
EVENTS_PER_SECOND = 20_000  # that all followers of one tenant look at, on one server


class _Tail:
    """The end of one tenant's log, while somebody follows it."""

    def __init__(self) -> None:
        self.followers: set[Follower] = set()
        self.recent = RecentEvents(KEPT_OF_TENANT)
        self.reading = asyncio.Lock()
        self.head = 0  # the newest position that is known
        self.is_known = False  # the head was read since somebody follows
        self._paid_until = 0.0  # by the loop's clock: for what all followers looked at

    def found(self, after: int, limit: int) -> list[Event] | None:
        """The next events, if that can be said without the store."""
        if self.is_known and after == self.head:
            return []
        return self.recent.after(after, limit) or None

    def rest_seconds(self, events: int, now: float) -> float:
        """Of a follower that looked at so many; those that only wait cost the others nothing."""
        self._paid_until = max(self._paid_until, now) + events / EVENTS_PER_SECOND
        return self._paid_until - now

    def moved_to(self, head: int) -> bool:
        is_news = head > self.head
        self.head = max(head, self.head)
        self.is_known = True
        return is_news


class Follower:
    """One stream, one socket or one waiting request; made by `EventTails.follow`."""

    def __init__(
        self, tails: EventTails, tenant: TenantId, tail: _Tail, news: asyncio.Event
    ) -> None:
        self._tails = tails
        self._tenant = tenant
        self._tail = tail
        self._news = news

    @property
    def is_closed(self) -> bool:
        """The server is about to stop: another one goes on from the same position."""
        return self._tails.is_closed

    async def head(self, at_least: int = 0) -> int:
        """The newest position there is. Who says to know one, by another server, is believed late:
        it may have been told of it before this one was."""
        if not self._tail.is_known or self._tail.head < at_least:
            await self._tails.read(self._tenant, self._tail, at_least, 1)
        return self._tail.head

    async def page(self, after: int, limit: int = AT_ONCE) -> EventPage:
        """The events that follow a position, from memory or from the store."""
        tail = self._tail
        found = tail.found(after, limit)
        if found is None:
            async with tail.reading:  # who comes meanwhile finds what the first one has read
                found = tail.found(after, limit)
                if found is None:
                    return await self._tails.read(self._tenant, tail, after, limit)
        return EventPage(found, 0, tail.head)

    def has_news(self, after: int) -> bool:
        """Whether there may be an event behind this position."""
        return self._tail.head > after

    async def until_news(self, after: int, seconds: float) -> None:
        """Until there may be an event behind this position, or for so long."""
        self._news.clear()
        if not self.has_news(after) and not self.is_closed:
            await wait(self._news, seconds)

    async def rest(self, events: int) -> None:
        """After so many events: followers of one tenant share what the server does for it."""
        if events:
            await pause(self._tail.rest_seconds(events, asyncio.get_running_loop().time()))

    def wake(self) -> None:
        self._news.set()


class EventTails:
    def __init__(
        self,
        database: Database,
        reader: EventReader,
        on_follower: Callable[[], None],
        *,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._reader = reader
        self._on_follower = on_follower
        self._tenant_shards = tenant_shards
        self._tails: dict[TenantId, _Tail] = {}  # what was read last is at the end
        self._kept = 0
        self.is_closed = False

    @contextmanager
    def follow(self, tenant: TenantId, news: asyncio.Event | None = None) -> Iterator[Follower]:
        """`news` is set when there is some; one that follows several logs has one for all."""
        if tenant not in self._tails:
            self._tails[tenant] = _Tail()
            self._on_follower()
        tail = self._tails[tenant]
        follower = Follower(self, tenant, tail, news or asyncio.Event())
        tail.followers.add(follower)
        try:
            yield follower
        finally:
            tail.followers.discard(follower)
            if not tail.followers:
                del self._tails[tenant]
                self._kept -= len(tail.recent)

    def moved(self, heads: Mapping[TenantId, int]) -> None:
        """Logs end here now: whoever follows one of them has something to read."""
        for tenant, head in heads.items():
            tail = self._tails.get(tenant)
            if tail is not None and tail.moved_to(head):
                for follower in tail.followers:
                    follower.wake()

    async def until_match(
        self, tenant: TenantId, wanted: EventFilter, after: int, seconds: float
    ) -> int:
        """Until an event follows that is wanted, or for so long. Answers how far there is none."""
        now = asyncio.get_running_loop().time
        ends_at = now() + seconds
        with self.follow(tenant) as follower:
            while not self.is_closed:
                page = await follower.page(after)
                if page.trimmed_to > after or any(map(wanted.matches, page.events)):
                    break
                after = page.events[-1].position if page.events else after
                await follower.rest(len(page.events))
                if now() >= ends_at:
                    break
                await follower.until_news(after, ends_at - now())
        return after

    async def read(self, tenant: TenantId, tail: _Tail, after: int, limit: int) -> EventPage:
        """From the store, for one follower; what is new is kept for the others."""
        page = await self._reader.page(tenant, after, limit)
        self.moved({tenant: page.last})
        if self._tails.get(tenant) is tail:
            self._keep(tenant, tail, page.events)
        return page

    async def run_once(self, now_us: int) -> float:
        """Ask where the logs end that somebody follows; a loop calls this."""
        tenants = list(self._tails)
        for start in range(0, len(tenants), HEADS_AT_ONCE):
            asked = tenants[start : start + HEADS_AT_ONCE]
            pairs = [(self._tenant_shards.of(one), one) for one in asked]
            async with self._database.background() as connection:
                heads = await read_heads(connection, pairs)
            self.moved(heads)
        return TICK_SECONDS if tenants else IDLE_SECONDS

    def close(self) -> None:
        """Nobody waits any longer."""
        self.is_closed = True
        for tail in self._tails.values():
            for follower in tail.followers:
                follower.wake()

    def follows(self, tenant: TenantId) -> bool:
        """Whether somebody follows its log here."""
        return tenant in self._tails

    @property
    def kept(self) -> int:
        """Events in memory."""
        return self._kept

    def _keep(self, tenant: TenantId, tail: _Tail, events: Sequence[Event]) -> None:
        self._kept -= len(tail.recent)
        tail.recent.add(events)
        self._kept += len(tail.recent)
        self._tails[tenant] = self._tails.pop(tenant)
        for other in list(self._tails.values()):
            if self._kept <= KEPT_MAX:
                break
            self._kept -= len(other.recent)
            other.recent.clear()  # its followers read from the store
