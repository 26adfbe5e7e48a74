"""Terms at work on a real store: weights and tiers on what is queued, caps, reservations, debts."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    SHORT,
    Hand,
    add_tenant,
    kill,
    new,
    owner_on,
    owns_all,
    platform_on,
    submit,
    until,
)

from fairway.core.errors import LimitReached
from fairway.core.tenant import Tenant, TenantSettings, Tier
from fairway.runtime.clock import SystemClock
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


# -- debts ---------------------------------------------------------------------------------------


async def owe(platform: Platform, tenant: Tenant, seconds: float) -> None:
    """All four slots for so long, by jobs that were believed short."""
    await submit(platform, tenant, *[new("slow")] * 4)
    hand = Hand(platform, types=("slow",), short=4)
    leases = await hand.take(4)
    await add_waiting(platform)
    await asyncio.sleep(seconds)
    await hand.report(*(hand.done(lease) for lease in leases))
    await hand.say(goodbye=True)


async def add_waiting(platform: Platform) -> None:
    """Somebody waits while the slots are taken: else nothing is owed to anybody."""
    patient = await tenant_with(platform, "patient")
    await submit(platform, patient, *[new("slow")] * 4)


async def write_debts(platform: Platform) -> None:
    platform.fair_share_loop._pass_due_us = 0
    await platform.fair_share_loop.run_once(platform.clock.now_us())


async def debts_on_disk(platform: Platform) -> dict[int, int]:
    async with platform.database.background() as connection:
        rows = await connection.fetch("SELECT tenant, debt_us FROM fair_share WHERE pool = 1")
    return {row["tenant"]: row["debt_us"] for row in rows}


async def test_a_debtor_is_not_served_before_others_after_a_failover(database_url: str) -> None:
    first = await Platform.prepare(database_url, QUICK, SystemClock())
    await first.start()
    await until(lambda: owns_all(first))
    debtor = await tenant_with(first, "debtor")
    await owe(first, debtor, 0.6)
    await write_debts(first)
    assert (await debts_on_disk(first))[debtor.id] > 0
    await kill(first)
    async with owner_on(database_url) as second:
        assert debtor.id in second.dispatcher.shares[SHORT].tenants()
        modest = await tenant_with(second, "modest")
        for tenant in (debtor, modest):
            await submit(second, tenant, *[new()] * 20)
        hand = Hand(second, short=1)
        (lease,) = await hand.take()
        for _ in range(5):  # of one slot, until the debt is paid
            assert lease.job.tenant == modest.id
            await hand.report(hand.done(lease))
            (lease,) = await hand.take()


async def test_a_replaced_owner_writes_no_debts(platform: Platform) -> None:
    debtor = await tenant_with(platform, "debtor")
    await owe(platform, debtor, 0.5)
    async with platform.database.background() as connection:
        await connection.execute("UPDATE shards SET term = term + 1")
    await write_debts(platform)
    assert await debts_on_disk(platform) == {}


async def test_debts_that_could_not_be_written_are_written_later(platform: Platform) -> None:
    debtor = await tenant_with(platform, "debtor")
    await owe(platform, debtor, 0.5)
    async with platform.database.upkeep() as connection:
        await connection.execute("ALTER TABLE fair_share RENAME TO away")
    with pytest.raises(Exception, match="fair_share"):
        await write_debts(platform)
    async with platform.database.upkeep() as connection:
        await connection.execute("ALTER TABLE away RENAME TO fair_share")
    await write_debts(platform)
    assert (await debts_on_disk(platform))[debtor.id] > 0


# -- depth ---------------------------------------------------------------------------------------


async def test_a_full_queue_refuses_and_others_see_nothing(platform: Platform) -> None:
    full, other = await add_tenant(platform, "full", depth_limit=5), await add_tenant(platform, "o")
    await submit(platform, full, *[new()] * 3, new(pool=MEDIUM))
    with pytest.raises(LimitReached) as refused:
        await submit(platform, full, new(), new())
    assert refused.value.code == "QUEUE_DEPTH_EXCEEDED"
    assert refused.value.retry_after_seconds > 0
    assert len(await submit(platform, full)) == 1
    assert len(await submit(platform, other, *[new()] * 50)) == 50
    hand = Hand(platform)
    leases = [one for one in await hand.take(4) if one.job.tenant == full.id]
    assert len(await submit(platform, full, *[new()] * len(leases))) == len(leases)  # room again


async def test_a_refusal_costs_no_tokens(platform: Platform) -> None:
    tenant = await tenant_with(platform, "t", depth_limit=1, rate_per_second=1, burst=5)
    for _ in range(20):
        with pytest.raises(LimitReached) as refused:
            await submit(platform, tenant, new(), new())
        assert refused.value.code == "QUEUE_DEPTH_EXCEEDED"
    assert platform.admission.quota(tenant).left == 5
