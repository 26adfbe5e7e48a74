"""Names that are let go just when somebody uses them: workers that are there, jobs on their way."""

from __future__ import annotations

import asyncio

import pytest
from tests.locked import held_table, somebody_stands
from tests.postgres import connected
from tests.services.platform_room import Hand, add_tenant, freeze, new, submit
from tests.services.registry.test_type_name_expiry import (
    LONG_US,
    drop_jobs,
    is_let_go,
    keeper_of,
    later,
    rows,
    tick,
)

from fairway.core.audit import PLATFORM
from fairway.core.ids import PoolId, TenantId
from fairway.core.job_type import TypeFacts
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.registry import type_name_expiry as module
from fairway.services.registry.type_name_expiry import BUSY_SECONDS, TypeNameExpiry
from fairway.services.registry.type_names import ABSENT_SECONDS
from fairway.services.sessions.sessions import Holding, Session
from fairway.store.registry import job_types, type_names


@pytest.fixture
async def expiry(platform: Platform) -> TypeNameExpiry:
    """One that has just asked all workers what they run, and will not for ten minutes."""
    await freeze(platform)
    expiry = keeper_of(platform)
    await expiry.run_once(LONG_US)
    return expiry


async def worker(platform: Platform, name: str, tenant: TenantId | None = None) -> Hand:
    hand = Hand(platform, types=[name])
    hand.tenant = tenant
    await hand.say(hello=True)
    return hand


async def must_say_hello(hand: Hand) -> bool:
    return await hand.say() is None


# -- workers that are there --------------------------------------------------------------------


async def test_a_worker_that_came_back_just_before_its_name_lapsed_says_it_again(
    platform: Platform, expiry: TypeNameExpiry
) -> None:
    await platform.directory.know_types(["rare"])
    async with platform.database.background() as connection:
        await later(connection, 30.1)
    hand, other = await worker(platform, "rare"), await worker(platform, "other")
    await tick(platform, expiry)
    assert not (await rows(platform, "rare") or {})["shared"]
    assert await must_say_hello(hand)
    assert not await must_say_hello(other)
    await hand.say(hello=True)
    assert (await rows(platform, "rare") or {})["shared"]
    await tick(platform, expiry)
    assert not await must_say_hello(hand)


async def test_a_worker_whose_type_is_let_go_has_its_number_by_the_next_call(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    """Else its name would be gone a week later, and who names it would have another number."""
    await platform.directory.know_types(["own"], tenant.id)
    hand = await worker(platform, "own", tenant.id)
    for _ in range(2):
        await tick(platform, expiry, days=2)
    assert await is_let_go(platform, "own")
    assert await must_say_hello(hand)
    await hand.say(hello=True)
    for _ in range(2):
        expiry._renew_due_us = 0
        await tick(platform, expiry, days=8)
    assert not await is_let_go(platform, "own")
    number = (await platform.directory.know_types(["own"], tenant.id))["own"]
    assert platform.dispatcher.sessions[hand.key].types == {number}


async def test_a_tenants_name_is_its_own_again_while_its_worker_is_there(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    other = await add_tenant(platform, "other")
    await submit(platform, other, new("common"))  # so nobody is asked: the type is in use
    await platform.directory.know_types(["common"], tenant.id)
    await worker(platform, "common", tenant.id)
    await tick(platform, expiry, days=2)
    assert (await rows(platform, "common") or {})["namers"] == 1
    expiry._renew_due_us = 0
    await tick(platform, expiry)
    assert (await rows(platform, "common") or {})["namers"] == 2


# -- jobs on their way -------------------------------------------------------------------------


async def test_a_job_that_comes_while_others_are_walked_over_keeps_its_name(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "JOBS_AT_ONCE", 2)
    monkeypatch.setattr(module, "PARTS_PER_ROUND", 1)
    gone = await submit(platform, tenant, new("back"), new("gone"))
    await drop_jobs(platform, *gone)
    await submit(platform, tenant, *(new("young") for _ in range(5)))
    async with platform.database.background() as connection:
        await later(connection, 2)
    assert await expiry.run_once(LONG_US) == BUSY_SECONDS  # one page of three
    await submit(platform, tenant, new("back"))
    for _ in range(10):
        await tick(platform, expiry)
    assert (await rows(platform, "back") or {})["namers"] == 1
    assert (await rows(platform, "gone") or {})["namers"] == 0


async def test_a_name_that_was_let_go_is_found_by_who_looks_for_its_jobs(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    (number,) = (await platform.directory.know_types(["late"], tenant.id)).values()
    for _ in range(2):
        await tick(platform, expiry, days=2)
    assert await is_let_go(platform, "late")
    for _ in range(2):  # and what was answered is not asked again
        assert await platform.directory.find_type("late", tenant.id) == number
        assert "late" not in platform.directory.type_ids
    assert await platform.directory.find_type("never", tenant.id) is None
    await submit(platform, tenant, new("late"))
    assert await platform.directory.find_type("late", tenant.id) == number
    assert ABSENT_SECONDS <= 1, "what another server brings back is found soon"


# -- who follows -------------------------------------------------------------------------------


async def test_what_lapses_is_seen_although_the_look_for_others_takes_long(
    platform: Platform, expiry: TypeNameExpiry, database_url: str
) -> None:
    """Others read changes by their date, and only some seconds back."""
    await platform.directory.know_types(["lapses"])
    async with platform.database.background() as connection:
        await later(connection, 31)
    async with held_table(database_url, "tenant_types") as holder:
        looks = asyncio.create_task(expiry.run_once(LONG_US))
        await somebody_stands(holder, "fairway-background")
        assert not await holder.fetchval("SELECT shared FROM job_types WHERE name = 'lapses'")
    await looks


# -- what is kept in memory --------------------------------------------------------------------


async def test_nothing_is_expected_any_more_of_a_type_that_was_let_go(
    platform: Platform, tenant: Tenant, expiry: TypeNameExpiry
) -> None:
    def expected(number: int) -> bool:
        shares = platform.dispatcher.shares.values()
        return any(number in share._estimates.by_type for share in shares)

    (job,) = await submit(platform, tenant, new("ran"))
    hand = Hand(platform, types=["ran"])
    (lease,) = await hand.take()
    await hand.report(hand.done(lease))
    await hand.say(goodbye=True)
    assert expected(lease.job.type)
    await drop_jobs(platform, job)
    async with platform.database.background() as connection:
        await connection.execute("UPDATE job_types SET shared = false, said_at = '-infinity'")
    for _ in range(2):
        await tick(platform, expiry, days=2)
    assert await is_let_go(platform, "ran")
    assert not expected(lease.job.type)


async def test_nothing_is_expected_of_a_type_that_was_taken_back(platform: Platform) -> None:
    found = await platform.registry.put_type("by.hand", TypeFacts(), PLATFORM)
    platform.dispatcher.shares[PoolId(1)].expect(found.id, 1000)
    await platform.registry.take_back_type("by.hand", PLATFORM)
    assert found.id not in platform.dispatcher.shares[PoolId(1)]._estimates.by_type


async def test_a_type_that_was_let_go_makes_workers_say_hello_once(platform: Platform) -> None:
    """Its row is read again for ten seconds; each time every hello under way was asked for anew."""
    await freeze(platform)
    await platform.registry.put_type("by.hand", TypeFacts(), PLATFORM)
    before = platform.dispatcher.lapses()
    await platform.registry.take_back_type("by.hand", PLATFORM)
    assert platform.dispatcher.lapses() == before + 1
    hand = Hand(platform)
    assert await hand.say(hello=True) is not None
    await platform.registry.run_once(0)
    assert platform.dispatcher.lapses() == before + 1
    assert platform.dispatcher.sessions[hand.key].greeted


async def test_a_type_that_is_put_while_another_server_takes_it_back_is_there(
    platform: Platform,
) -> None:
    await freeze(platform)  # it has not heard of that yet
    found = await platform.registry.put_type("both", TypeFacts(), PLATFORM)
    async with platform.database.background() as connection:
        assert await job_types.take_back_type(connection, found.id)
    again = await platform.registry.put_type("both", TypeFacts(attempts_max=2), PLATFORM)
    assert (again.id, again.is_shared, again.facts.attempts_max) == (found.id, True, 2)
    assert not await is_let_go(platform, "both")


async def test_a_type_that_is_taken_back_during_a_hello_is_said_again(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the worker would run it for ever without its being registered."""
    await freeze(platform)
    found = await platform.registry.put_type("x", TypeFacts(), PLATFORM)
    async with platform.database.background() as connection:
        await type_names.name_for_tenant(connection, tenant.id, ["x"], by_worker=False)
    hand = await worker(platform, "x")
    reconciler, gate, is_there = (
        platform.exchange._lease_reconciler,
        asyncio.Event(),
        asyncio.Event(),
    )
    greeted = reconciler.greeted

    async def slow(session: Session, holdings: list[Holding]) -> None:
        is_there.set()
        await gate.wait()
        await greeted(session, holdings)

    monkeypatch.setattr(reconciler, "greeted", slow)
    hello = asyncio.create_task(hand.say(hello=True))
    await is_there.wait()
    await platform.registry.take_back_type("x", PLATFORM)
    gate.set()
    assert await hello is None, "it must say hello again"
    assert await hand.say(hello=True) is not None
    await platform.registry.run_once(0)
    assert platform.registry.types[found.id].is_shared


async def test_a_type_that_is_being_named_is_taken_back_and_stays_in_use(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    """Whoever takes it back waits for the row, and must not decide by what it saw before."""
    await freeze(platform)
    found = await platform.registry.put_type("x", TypeFacts(), PLATFORM)
    async with connected(database_url) as connection, connection.transaction():
        await type_names.name_for_tenant(connection, tenant.id, ["x"], by_worker=False)
        taking = asyncio.create_task(platform.registry.take_back_type("x", PLATFORM))
        await somebody_stands(connection, "fairway-people")
    await taking
    assert not await is_let_go(platform, "x")
    assert found.id in platform.directory.type_ids.values()
