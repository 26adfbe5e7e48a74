"""Debts outlive their owner: written now and then, and never by who was replaced."""

from __future__ import annotations

import asyncio

import pytest
from tests.services.dispatch.test_pool_shares import tenant_with
from tests.services.platform_room import (
    QUICK,
    SHORT,
    Hand,
    kill,
    new,
    owner_on,
    owns_all,
    submit,
    until,
)

from fairway.core.tenant import Tenant
from fairway.runtime.clock import SystemClock
from fairway.services.jobs.far_runs import no_peers
from fairway.services.platform import Platform


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
    first = await Platform.prepare(database_url, QUICK, SystemClock(), no_peers)
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
    async with platform.database.upkeep() as connection:  # first: the loop itself may write sooner
        await connection.execute("ALTER TABLE fair_share RENAME TO away")
    await owe(platform, debtor, 0.5)
    with pytest.raises(Exception, match="fair_share"):
        await write_debts(platform)
    async with platform.database.upkeep() as connection:
        await connection.execute("ALTER TABLE away RENAME TO fair_share")
    await write_debts(platform)
    assert (await debts_on_disk(platform))[debtor.id] > 0
