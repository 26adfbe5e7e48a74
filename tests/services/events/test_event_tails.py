"""One reader for all who follow: what is new is read once, and nobody's slowness is kept for it."""

from __future__ import annotations

import asyncio

import pytest
from tests.services.platform_room import until

from fairway.core.events.event import NewEvent
from fairway.core.events.event_filter import EventFilter
from fairway.core.ids import TenantId
from fairway.core.tenant import Tenant
from fairway.services.events import event_tails
from fairway.services.events.event_reader import EventReader
from fairway.services.events.event_tails import AT_ONCE, EventTails, Follower
from fairway.services.platform import Platform
from fairway.store.events.log import EventPage, add_notices

SECONDS = 30.0


class CountingReader(EventReader):
    reads = 0

    async def page(self, tenant: TenantId, after: int, limit: int) -> EventPage:
        self.reads += 1
        return await super().page(tenant, after, limit)


class World:
    """A tenant with notices, and tails of their own over the store."""

    def __init__(self, platform: Platform, tenant: Tenant) -> None:
        self.platform, self.tenant = platform, tenant.id
        shards = platform.tenant_shards
        self.reader = CountingReader(platform.database, tenant_shards=shards)
        self.woken = 0
        self.tails = EventTails(platform.database, self.reader, self._wake, tenant_shards=shards)

    def _wake(self) -> None:
        self.woken += 1

    async def write(self, count: int, subject: str = "t") -> None:
        """So many notices; the platform's own loop puts them in order."""
        wanted = await self._last() + count
        notice = NewEvent(self.tenant, "circuit.opened", subject, "It is away.")
        async with self.platform.database.background() as connection:
            await add_notices(connection, [notice] * count)
        for shard in self.platform.dispatcher.terms():
            self.platform.events.sequencer.written(shard)

        async def are_there() -> bool:
            return await self._last() == wanted

        await until(are_there)

    async def _last(self) -> int:
        return (await self.platform.events.reader.page(self.tenant, 0, 1)).last


@pytest.fixture
async def world(platform: Platform, tenant: Tenant) -> World:
    return World(platform, tenant)


async def all_of(follower: Follower, after: int, count: int) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(SECONDS):
        while len(found) < count:
            await follower.until_news(found[-1] if found else after, SECONDS)
            page = await follower.page(found[-1] if found else after)
            found += [event.position for event in page.events]
    return found


async def test_what_is_new_is_read_once_for_all(world: World) -> None:
    with world.tails.follow(world.tenant) as first, world.tails.follow(world.tenant) as second:
        assert world.woken == 1
        assert (await first.page(0)).events == []
        assert (await second.page(0)).events == []
        reads = world.reader.reads
        waiting = [asyncio.create_task(all_of(one, 0, 3)) for one in (first, second)]
        await world.write(3)
        assert await world.tails.run_once(0) == event_tails.TICK_SECONDS
        assert await asyncio.gather(*waiting) == [[1, 2, 3]] * 2
        assert await first.head() == 3
        assert world.reader.reads == reads + 1
    assert world.tails.kept == 0
    assert not world.tails.follows(world.tenant)
    assert await world.tails.run_once(0) == event_tails.IDLE_SECONDS


async def test_who_is_slow_reads_by_its_position(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory holds few; all of the log is told nevertheless, and no more is kept for that."""
    monkeypatch.setattr(event_tails, "KEPT_OF_TENANT", 10)
    count = AT_ONCE + 50
    await world.write(count)
    with world.tails.follow(world.tenant) as quick, world.tails.follow(world.tenant) as slow:
        assert len((await quick.page(count - 20)).events) == 20
        assert world.tails.kept == 10
        assert await all_of(slow, 0, count) == [*range(1, count + 1)]
        assert world.tails.kept == 10
        monkeypatch.setattr(event_tails, "KEPT_MAX", 5)  # over all tenants
        await world.write(1)
        await world.tails.run_once(0)
        assert [event.position for event in (await quick.page(count)).events] == [count + 1]
        assert world.tails.kept == 0
        assert [event.position for event in (await slow.page(count)).events] == [count + 1]


async def test_who_waits_is_told_when_the_server_stops(world: World) -> None:
    with world.tails.follow(world.tenant) as follower:
        await follower.page(0)
        waiting = asyncio.create_task(follower.until_news(0, SECONDS))
        await asyncio.sleep(0)
        world.tails.close()
        async with asyncio.timeout(SECONDS / 2):
            await waiting
        assert follower.is_closed


async def test_a_wait_ends_with_what_is_wanted(world: World, platform: Platform) -> None:
    """By the platform's own tails, to which its sequencer tells what it moved."""
    tails = platform.events.tails
    wanted = EventFilter(types=("wanted",))
    waiting = asyncio.create_task(tails.until_match(world.tenant, wanted, 0, SECONDS))
    await until(lambda: tails.follows(world.tenant))
    await world.write(2, "other")
    await world.write(1, "wanted")
    async with asyncio.timeout(SECONDS / 2):
        assert await waiting <= 2
    assert await tails.until_match(world.tenant, wanted, 3, 0.01) == 3
