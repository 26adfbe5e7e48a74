"""Pauses on a real store: tenant, type, pool and mixes, with backlogs deeper than a window."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.services.platform_room import (
    LONG,
    QUICK,
    SHORT,
    Hand,
    add_tenant,
    freeze,
    new,
    owner_on,
    platform_on,
    submit,
    until,
)

from fairway.core.backlog.holds import Hold
from fairway.core.errors import LimitReached
from fairway.core.ids import TypeId
from fairway.core.tenant import Tenant
from fairway.runtime.clock import SystemClock
from fairway.services.platform import Platform
from fairway.services.restraints.pauses import TENANT_PAUSES_MAX, Pauser
from fairway.store.connections.database import Connection
from fairway.store.registry import tiers

SMALL = replace(QUICK, window_jobs=20)


@pytest.fixture
async def narrow(database_url: str) -> AsyncIterator[Platform]:
    """A server that keeps twenty jobs in memory, no more."""
    async with owner_on(database_url, SMALL) as platform:
        yield platform


def type_id(platform: Platform, name: str) -> int:
    return platform.directory.type_ids[name]


async def nothing_starts(hand: Hand, calls: int = 3) -> None:
    for _ in range(calls):
        news = await hand.say(wait_seconds=0.1)
        assert news is not None
        assert news.leases == []


async def run_all(hand: Hand, count: int) -> list[str]:
    """Take and report until so many jobs ran; their ids in the order they came."""
    ran: list[str] = []
    async with asyncio.timeout(30):
        while len(ran) < count:
            news = await hand.say(wait_seconds=0.2)
            assert news is not None
            ran += [lease.job.id for lease in news.leases]
            if news.leases:
                await hand.report(*(hand.done(lease) for lease in news.leases))
    return ran


async def test_a_paused_tenant_starts_nothing_and_goes_on_in_order(narrow: Platform) -> None:
    tenant, other = await add_tenant(narrow), await add_tenant(narrow, "other")
    before = await submit(narrow, tenant, *[new()] * 60)  # three times what memory holds
    await narrow.pauses.pause(Hold(tenant=tenant.id))
    during = await submit(narrow, tenant, *[new()] * 5)
    hand = Hand(narrow)
    await hand.say(hello=True)
    await nothing_starts(hand)
    assert narrow.dispatcher.backlog.windows.jobs_held == 0
    (unheld,) = await submit(narrow, other)
    assert await run_all(hand, 1) == [unheld]
    assert await narrow.pauses.resume(Hold(tenant=tenant.id))
    assert await run_all(hand, 65) == before + during
    assert narrow.dispatcher.backlog.counts.depth(tenant.id, [SHORT]) == 0


async def test_what_runs_runs_on_and_what_comes_back_waits(narrow: Platform) -> None:
    tenant = await add_tenant(narrow)
    await submit(narrow, tenant, new(), new())
    hand = Hand(narrow, short=2)
    first, second = await hand.take(2)
    await narrow.pauses.pause(Hold(tenant=tenant.id))
    recorded, refused = await hand.report(hand.done(first))
    assert (len(recorded), len(refused)) == (1, 0)
    await hand.say(goodbye=True)  # the second is lost with it, and is queued again
    await until(lambda: narrow.dispatcher.backlog.counts.depth(tenant.id, [SHORT]) == 1)
    heir = Hand(narrow)
    await heir.say(hello=True)
    await nothing_starts(heir)
    await narrow.pauses.resume(Hold(tenant=tenant.id))
    assert await run_all(heir, 1) == [second.job.id]


async def test_a_paused_type_holds_that_type_of_every_tenant(narrow: Platform) -> None:
    tenants = [await add_tenant(narrow, name) for name in ("one", "two")]
    await narrow.directory.know_types(["bad"])
    await narrow.pauses.pause(Hold(type=TypeId(type_id(narrow, "bad"))))
    hand = Hand(narrow, types=("bad", "good"))
    await hand.say(hello=True)
    for tenant in tenants:
        await submit(narrow, tenant, *[new("bad")] * 30, *[new("good")] * 10)
    ran = await run_all(hand, 20)
    await nothing_starts(hand)
    await narrow.pauses.resume(Hold(type=TypeId(type_id(narrow, "bad"))))
    assert len(set(ran + await run_all(hand, 60))) == 80


async def test_a_paused_pool_holds_that_pool_alone(narrow: Platform) -> None:
    tenant = await add_tenant(narrow)
    (long,) = await submit(narrow, tenant, new(pool=LONG))
    await narrow.pauses.pause(Hold(pool=LONG))
    hand = Hand(narrow, short=2, long=2)
    await hand.say(hello=True)
    (short,) = await submit(narrow, tenant)
    assert await run_all(hand, 1) == [short]
    await nothing_starts(hand)
    await narrow.pauses.resume(Hold(pool=LONG))
    assert await run_all(hand, 1) == [long]


async def test_a_type_of_one_tenant_can_be_paused(narrow: Platform) -> None:
    one, two = await add_tenant(narrow, "one"), await add_tenant(narrow, "two")
    held = await submit(narrow, one, *[new("bad")] * 3)
    hold = Hold(tenant=one.id, type=TypeId(type_id(narrow, "bad")))
    await narrow.pauses.pause(hold)
    hand = Hand(narrow, types=("bad", "good"))
    await hand.say(hello=True)
    free = await submit(narrow, one, new("good")) + await submit(narrow, two, new("bad"))
    assert set(await run_all(hand, 2)) == set(free)
    await nothing_starts(hand)
    assert await narrow.pauses.resume(hold)
    assert not await narrow.pauses.resume(hold)
    assert await run_all(hand, 3) == held


async def test_two_pauses_on_one_job_must_both_end(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    pauses = [Hold(tenant=tenant.id), Hold(pool=SHORT)]
    for pause in pauses:
        await platform.pauses.pause(pause)
    hand = Hand(platform)
    await hand.say(hello=True)
    await platform.pauses.resume(pauses[0])
    await nothing_starts(hand)
    await platform.pauses.resume(pauses[1])
    assert await run_all(hand, 1) == [job]


async def test_a_pause_made_on_another_server_is_heard_of(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    async with platform_on(database_url) as other:
        await other.pauses.pause(Hold(tenant=tenant.id))
        await until(lambda: bool(platform.dispatcher.backlog.runnable.holds))
        assert await platform.pauses.of() == (Hold(tenant=tenant.id),)
        await other.pauses.resume(Hold(tenant=tenant.id))
        await until(lambda: not platform.dispatcher.backlog.runnable.holds)


async def test_a_pause_outlives_its_server(database_url: str) -> None:
    async with owner_on(database_url) as first:
        tenant = await add_tenant(first)
        await submit(first, tenant)
        await first.pauses.pause(Hold(tenant=tenant.id))
    async with owner_on(database_url) as second:
        hand = Hand(second)
        await hand.say(hello=True)
        await nothing_starts(hand)
        await second.pauses.resume(Hold(tenant=tenant.id))
        assert len(await run_all(hand, 1)) == 1


async def test_a_slow_look_does_not_undo_a_pause(platform: Platform, tenant: Tenant) -> None:
    """Many looks at once, each of which may have read before the pause."""
    for _ in range(20):
        looks = [asyncio.create_task(platform.pauses.run_once(0)) for _ in range(5)]
        await platform.pauses.pause(Hold(tenant=tenant.id))
        await asyncio.gather(*looks)
        assert platform.dispatcher.backlog.runnable.holds
        await platform.pauses.resume(Hold(tenant=tenant.id))
        assert not platform.dispatcher.backlog.runnable.holds


async def test_many_who_look_at_once_share_a_look(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many pause at once, the next one is heard of after two looks."""
    await freeze(platform)
    real, looks = tiers.all_pauses, 0

    async def counted(connection: Connection) -> list[Hold]:
        nonlocal looks
        looks += 1
        return await real(connection)

    monkeypatch.setattr(tiers, "all_pauses", counted)
    await asyncio.gather(*(platform.pauses.run_once(0) for _ in range(50)))
    assert looks == 2


async def test_a_paused_tenant_is_owed_nothing(platform: Platform, tenant: Tenant) -> None:
    """Its jobs keep coming while it is paused: that is no claim to slots."""
    hand = Hand(platform)
    await hand.say(hello=True)
    await platform.pauses.pause(Hold(tenant=tenant.id))
    await submit(platform, tenant)
    await asyncio.sleep(0.3)
    await submit(platform, tenant)
    now_us = SystemClock().now_us()
    assert platform.dispatcher.shares[SHORT].standings.standing(tenant.id, now_us).entitled_us == 0


# -- how many ------------------------------------------------------------------------------------


async def test_a_tenant_has_so_many_pauses_and_no_more(database_url: str) -> None:
    async with owner_on(database_url) as platform:
        tenant, other = [await add_tenant(platform, name) for name in ("acme", "bolt")]
        pauses, as_tenant = platform.pauses, Pauser(asker=tenant.id)
        for number in range(1, TENANT_PAUSES_MAX + 1):
            await pauses.pause(Hold(tenant.id, TypeId(number)), as_tenant)
        with pytest.raises(LimitReached) as refusal:
            await pauses.pause(Hold(tenant.id, TypeId(TENANT_PAUSES_MAX + 1)), as_tenant)
        assert refusal.value.code == "TOO_MANY_PAUSES"
        await pauses.pause(Hold(tenant.id, TypeId(1)), as_tenant)  # as it is already
        await pauses.pause(Hold(other.id, TypeId(1)), Pauser(asker=other.id))
        await pauses.pause(Hold(tenant.id))  # an operator may, always
        assert len(await pauses.of()) == TENANT_PAUSES_MAX + 2
        assert await pauses.of(other.id) == (Hold(other.id, TypeId(1)),)
        assert await pauses.resume(Hold(tenant.id, TypeId(1)))
        assert await pauses.resume(Hold(tenant.id, TypeId(2)))
        await pauses.pause(Hold(tenant.id, TypeId(TENANT_PAUSES_MAX + 1)), as_tenant)
