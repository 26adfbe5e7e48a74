"""A tenant's log of events, whether it is in one shard or in several: read and followed as one.

Each part has a log of its own, which any server reads: no owner is asked. One that cannot be read
is told by its place, and nothing is told in its stead: what is missing would look like silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, TypeVar

from fairway.core.errors import Unavailable
from fairway.core.events.event import Event
from fairway.core.events.event_filter import EventFilter
from fairway.core.events.event_gap import LogItem
from fairway.core.events.log_places import MergedPage, PartPage, Places, in_order, merged
from fairway.core.ids import TenantId
from fairway.core.tenant import part_unavailable
from fairway.runtime.loops import WorkInParts, wait
from fairway.services.events.event_reader import EventReader, FoundEvents
from fairway.services.events.event_tails import AT_ONCE, EventTails, Follower

PART_EVENTS_MIN = 50  # asked of each part, however many there are
ITEMS_AT_A_STRETCH = 64  # between two looks at the clock

Told = TypeVar("Told")


class FoundInParts(NamedTuple):
    """A page of the log, and where each part's log begins and ends."""

    page: MergedPage
    trimmed_to: Places
    end: Places


class LogFollower:
    """Who follows the logs of all parts; made by `PartLogs.follow`."""

    def __init__(self, followers: Sequence[Follower], news: asyncio.Event) -> None:
        self._followers = followers
        self._news = news

    @property
    def is_closed(self) -> bool:
        return self._followers[0].is_closed

    async def heads(self, at_least: Places) -> Places:
        """The newest positions there are."""
        count = len(self._followers)
        found = [
            await _of_part(part, count, one.head(at_least[part]))
            for part, one in enumerate(self._followers)
        ]
        return tuple(found)

    async def following(self, after: Places) -> tuple[list[tuple[Places, LogItem]], int]:
        """What follows these positions, some of each part; and how many events that are."""
        count, pages = len(self._followers), list[tuple[Sequence[Event], int]]()
        for part, one in enumerate(self._followers):
            page = await _of_part(part, count, one.page(after[part], AT_ONCE))
            pages.append((page.events, page.trimmed_to))
        work, found = WorkInParts(), list[tuple[Places, LogItem]]()
        for item in in_order(pages, after):  # of sixteen parts thousands
            found.append(item)
            if len(found) % ITEMS_AT_A_STRETCH == 0:
                await work.let_others()
        return found, sum(len(events) for events, _ in pages)

    async def until_news(self, after: Places | None, seconds: float) -> None:
        """Until there may be an event behind these positions, or for so long; None: for so long,
        or until somebody wakes it."""
        self._news.clear()
        is_news = after is not None and any(
            one.has_news(position) for one, position in zip(self._followers, after, strict=True)
        )
        if not is_news and not self.is_closed:
            await wait(self._news, seconds)

    async def rest(self, events: int) -> None:
        await self._followers[0].rest(events)

    def wake(self) -> None:
        self._news.set()


class PartLogs:
    def __init__(self, reader: EventReader, tails: EventTails, parts: Sequence[TenantId]) -> None:
        """`parts`: of a tenant in one shard, itself alone."""
        self._reader = reader
        self._tails = tails
        self._parts = parts

    @property
    def count(self) -> int:
        return len(self._parts)

    async def following(self, wanted: EventFilter, after: Places, limit: int) -> FoundInParts:
        """Oldest first. The cursor moves on even where nothing is let through."""
        some, found = self._some(limit), list[FoundEvents]()
        for part, tenant in enumerate(self._parts):
            asked = self._reader.following(tenant, wanted, after[part], some)
            found.append(await _of_part(part, self.count, asked))
        pages = [PartPage(one.events, one.cursor, one.cursor < one.last) for one in found]
        return _found(found, merged(pages, after, limit))

    async def newest(self, wanted: EventFilter, below: Places | None, limit: int) -> FoundInParts:
        """Newest first, below these positions."""
        some, found = self._some(limit), list[FoundEvents]()
        for part, tenant in enumerate(self._parts):
            last = None if below is None else below[part]
            asked = self._reader.newest(tenant, wanted, last, some)
            found.append(await _of_part(part, self.count, asked))
        pages = [PartPage(one.events, one.cursor, one.cursor > one.trimmed_to + 1) for one in found]
        begin = tuple(one.events[0].position + 1 if one.events else one.cursor for one in found)
        return _found(found, merged(pages, begin, limit, newest=True))

    async def until_match(self, wanted: EventFilter, after: Places, seconds: float) -> Places:
        """Until an event follows that is wanted, or for so long. Answers how far there is none."""
        until = self._tails.until_match
        if self.count == 1:
            return (await until(self._parts[0], wanted, after[0], seconds),)
        tasks = [
            asyncio.create_task(until(tenant, wanted, after[part], seconds), name="part of a wait")
            for part, tenant in enumerate(self._parts)
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            found = [
                await _of_part(part, self.count, task) if task.done() else after[part]
                for part, task in enumerate(tasks)
            ]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return tuple(found)

    @contextmanager
    def follow(self) -> Iterator[LogFollower]:
        news = asyncio.Event()
        with ExitStack() as stack:
            followers = [stack.enter_context(self._tails.follow(one, news)) for one in self._parts]
            yield LogFollower(followers, news)

    def _some(self, limit: int) -> int:
        """How many to read of each part: together not much more than are wanted."""
        return min(limit, max(2 * limit // self.count, PART_EVENTS_MIN))


def _found(found: Sequence[FoundEvents], page: MergedPage) -> FoundInParts:
    trimmed_to = tuple(one.trimmed_to for one in found)
    return FoundInParts(page, trimmed_to, tuple(one.last for one in found))


async def _of_part(part: int, count: int, asked: Awaitable[Told]) -> Told:
    """What cannot be had is told with the part that it was asked of."""
    try:
        return await asked
    except Unavailable as error:
        if count == 1:
            raise
        raise part_unavailable(part, count, error) from error
