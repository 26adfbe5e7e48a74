"""Terms at work on a real store: weights and tiers on what is queued, caps, reservations, debts."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.services.platform_room import (
    MEDIUM,
    Hand,
    new,
    platform_on,
    submit,
    until,
)

from fairway.core.tenant import Tenant, TenantSettings, Tier
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Lease


async def tenant_with(platform: Platform, name: str, **settings: object) -> Tenant:
    given = TenantSettings(**{"tier": "enterprise", "weight": 10} | settings)  # type: ignore[arg-type]
    tenant = await platform.directory.add_tenant(name, given)
    assert tenant is not None
    return tenant


async def leases_of(hand: Hand, rounds: int = 3) -> list[Lease]:
    """What a worker is given at once and in a few calls more."""
    news = await hand.say(hello=True)
    assert news is not None
    leases = list(news.leases)
    for _ in range(rounds):
        news = await hand.say(wait_seconds=0.05)
        assert news is not None
        leases += news.leases
    return leases


def tenants_of(leases: list[Lease]) -> Counter[int]:
    return Counter(lease.job.tenant for lease in leases)


async def test_a_weight_acts_on_what_is_queued(platform: Platform) -> None:
    light, heavy = await tenant_with(platform, "a"), await tenant_with(platform, "b")
    for tenant in (light, heavy):
        await submit(platform, tenant, *[new()] * 40)
    await platform.directory.change_tenant("b", {"weight": 70})
    got = tenants_of(await leases_of(Hand(platform, short=16)))
    assert got[heavy.id] >= 6 * got[light.id] > 0
    assert got.total() == 16


async def test_a_tier_acts_on_what_is_queued(platform: Platform) -> None:
    """Free work has its slice, and no more of the pool than that while paid work waits."""
    free, paid = await tenant_with(platform, "a"), await tenant_with(platform, "b")
    for tenant in (free, paid):
        await submit(platform, tenant, *[new()] * 60)
    await platform.directory.change_tenant("a", {"tier": "free", "weight": None})
    got = tenants_of(await leases_of(Hand(platform, short=40)))
    assert (got[free.id], got[paid.id]) == (2, 38)  # five per cent


async def test_an_edited_tier_reaches_its_tenants_on_another_server(
    platform: Platform, database_url: str
) -> None:
    async with platform_on(database_url) as other:
        tenant = await platform.directory.add_tenant("pro", TenantSettings(tier="pro"))
        own = await platform.directory.add_tenant("own", TenantSettings(tier="pro", weight=7))
        assert tenant is not None
        assert own is not None
        await other.directory.put_tier(Tier("pro", 500, "", 20, 9, 77, 770, 1234))
        await until(lambda: platform.directory.tenants[tenant.id].weight == 500)
        found = platform.directory.tenants[tenant.id]
        assert (found.cap, found.rate_per_second, found.burst, found.depth_limit) == (
            9,
            77,
            770,
            1234,
        )
        assert found.floor_share == 20
        assert platform.directory.tenants[own.id].weight == 7
        assert platform.directory.tenants[own.id].cap == 9


async def test_a_cap_is_never_passed(platform: Platform) -> None:
    capped = await tenant_with(platform, "capped", cap=3)
    hands = [Hand(platform, short=4, medium=4) for _ in range(3)]
    for hand in hands:
        await hand.say(hello=True)
    await submit(platform, capped, *[new()] * 20, *[new(pool=MEDIUM)] * 20)
    held: list[list[Lease]] = [[], [], []]
    ran = 0
    async with asyncio.timeout(30):
        while ran < 40:
            for hand, mine in zip(hands, held, strict=True):
                done = [hand.done(lease) for lease in mine[:2]]
                ran += len(done)
                del mine[:2]
                news = await hand.say(reports=done, wait_seconds=0.02)
                assert news is not None
                mine += news.leases
                pools = Counter(lease.job.pool for each in held for lease in each)
                assert max(pools.values(), default=0) <= 3


async def test_a_lowered_cap_lets_what_runs_run_on(platform: Platform) -> None:
    tenant = await tenant_with(platform, "a")
    await submit(platform, tenant, *[new()] * 10)
    hand = Hand(platform, short=4)
    leases = await hand.take(4)
    await platform.directory.change_tenant("a", {"cap": 2})
    await hand.report(*(hand.done(lease) for lease in leases[:2]))
    news = await hand.say(wait_seconds=0.1)
    assert news is not None
    assert news.leases == []  # two run
    await hand.report(hand.done(leases[2]))
    news = await hand.say(wait_seconds=2)
    assert news is not None
    assert len(news.leases) == 1


async def test_a_reservation_is_kept_and_lent_only_to_what_ends_soon(platform: Platform) -> None:
    owner = await tenant_with(platform, "owner", reserved=(("short", 6),))
    other = await tenant_with(platform, "other")
    await submit(platform, other, *[new()] * 30)
    hand = Hand(platform, short=10)
    leases = await leases_of(hand)
    assert tenants_of(leases) == {other.id: 4}  # six are kept, though nobody needs them
    await submit(platform, other, *[new(timeout_ms=2001)] * 5)
    await platform.pauses.run_once(0)
    news = await hand.say(wait_seconds=0.1)
    assert news is not None
    assert news.leases == []
    await submit(platform, owner, *[new()] * 9)
    news = await hand.say(wait_seconds=1)
    assert news is not None
    assert tenants_of(list(news.leases)) == {owner.id: 6}


async def test_idle_reserved_slots_are_lent_to_short_limits(platform: Platform) -> None:
    await tenant_with(platform, "owner", reserved=(("short", 6),))
    other = await tenant_with(platform, "other")
    await submit(platform, other, *[new(timeout_ms=2000)] * 30)
    leases = await leases_of(Hand(platform, short=10))
    assert tenants_of(leases) == {other.id: 10}


async def test_a_reservation_larger_than_the_pool_does_no_harm(platform: Platform) -> None:
    owner = await tenant_with(platform, "owner", reserved=(("short", 1000),))
    await submit(platform, owner, *[new()] * 5)
    assert tenants_of(await leases_of(Hand(platform, short=3))) == {owner.id: 3}
