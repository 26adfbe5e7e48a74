"""A suspended tenant on a real store: nothing of it starts, goes on or is lost, on any server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.services.platform_room import (
    MEDIUM,
    QUICK,
    Hand,
    add_tenant,
    another_directory,
    freeze,
    kill,
    new,
    open_pair,
    owner_on,
    owns_all,
    sight,
    stopped,
    stored,
    submit,
    until,
)
from tests.services.scheduling.test_schedules import put, runs, ticker_of, turn_back
from tests.services.submit.test_outbox import in_jobs, read, shop_of

from fairway.core.audit import AuditFilter
from fairway.core.backlog.holds import Hold
from fairway.core.errors import Conflict, Forbidden, NotFound
from fairway.core.lifecycle import State
from fairway.core.run.outcome import Outcome, OutcomeKind
from fairway.core.scheduling.ticks import CatchUp
from fairway.core.tenant import TENANT_SUSPENDED, Tenant
from fairway.runtime.random_ids import new_api_key
from fairway.services.platform import Platform
from fairway.services.registry.tenant_states import TenantStates
from fairway.services.restraints.pauses import Pauser
from fairway.store.registry.audit import list_audit

WHY = "The invoice is open."


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    """Silent workers keep their leases for longer than a test takes."""
    patient = replace(QUICK, lease_seconds={"short": 60, "medium": 60, "long": 60})
    async with owner_on(database_url, patient) as platform:
        yield platform


async def suspend(platform: Platform, tenant: Tenant, *, cancels: bool = False) -> Tenant:
    return await platform.tenant_states.suspend(tenant.name, WHY, cancels_running=cancels)


def elsewhere(platform: Platform) -> TenantStates:
    """As another server does it: all that this one can see is the row."""
    states = platform.tenant_states
    return TenantStates(platform.database, another_directory(platform.database), kept=states.kept)


async def nothing_starts(hand: Hand) -> None:
    for _ in range(2):
        news = await hand.say(wait_seconds=0.1)
        assert news is not None
        assert news.leases == []


async def test_nothing_starts_until_it_is_resumed(platform: Platform, tenant: Tenant) -> None:
    other, hand = await add_tenant(platform, "other"), Hand(platform)
    (job,) = await submit(platform, tenant)
    await suspend(platform, tenant)
    await hand.say(hello=True)
    await nothing_starts(hand)
    (theirs,) = await submit(platform, other)
    (lease,) = await hand.take()
    assert lease.job.id == theirs, "others are not held"
    await hand.report(hand.done(lease))
    # A pause of its own is another matter, and stays when the suspension ends.
    await platform.pauses.pause(Hold(tenant.id), Pauser(asker=tenant.id))
    await platform.tenant_states.resume(tenant.name)
    await nothing_starts(hand)
    await platform.pauses.resume(Hold(tenant.id), Pauser(asker=tenant.id))
    (again,) = await hand.take()
    assert again.job.id == job


async def test_another_server_hears_of_it_and_holds_it(platform: Platform, tenant: Tenant) -> None:
    key = new_api_key("tenant")
    await platform.directory.add_key(key, tenant.id)
    assert await platform.directory.authenticate(key.text) is not None
    await elsewhere(platform).suspend(tenant.name, WHY, cancels_running=False)
    async with asyncio.timeout(30):
        await until(lambda: platform.dispatcher.holds().is_suspended(tenant.id))
    assert platform.directory.known(key.text) is None
    with pytest.raises(Forbidden) as told:
        await platform.directory.authenticate(key.text)
    assert told.value.code == TENANT_SUSPENDED
    assert WHY in told.value.message
    await elsewhere(platform).resume(tenant.name)
    async with asyncio.timeout(30):
        await until(lambda: not platform.dispatcher.holds().is_suspended(tenant.id))
    assert await platform.directory.authenticate(key.text) is not None


async def test_what_waits_under_its_keys_ends_and_may_wait_again_after_it(
    platform: Platform, tenant: Tenant
) -> None:
    key = new_api_key("tenant")
    await platform.directory.add_key(key, tenant.id)

    async def wait() -> None:
        async with platform.revocation.held(key.id):
            await asyncio.sleep(60)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    await suspend(platform, tenant)
    with pytest.raises(Forbidden) as told:
        await waiting
    assert told.value.code == TENANT_SUSPENDED
    with pytest.raises(Forbidden):
        platform.revocation.check(key.id)
    await platform.tenant_states.resume(tenant.name)
    platform.revocation.check(key.id)


@pytest.mark.parametrize("cancels", [True, False], ids=["cancelled", "finished"])
async def test_what_shared_workers_run_ends_as_chosen_and_is_recorded(
    platform: Platform, tenant: Tenant, *, cancels: bool
) -> None:
    hand = Hand(platform, medium=1)
    (job,) = await submit(platform, tenant, new(pool=MEDIUM))
    (lease,) = await hand.take()
    await suspend(platform, tenant, cancels=cancels)
    news = await hand.say()
    assert news is not None
    assert news.cancels == ([job] if cancels else [])
    outcome = Outcome(OutcomeKind.CANCELLED) if cancels else None
    word = hand.done(lease, outcome)
    assert await hand.report(word) == ({word.number}, set())
    state = State.CANCELLED if cancels else State.SUCCEEDED
    assert (await stored(platform, job))[0] is state


async def test_its_own_workers_are_shut_out_and_their_jobs_wait(
    platform: Platform, tenant: Tenant
) -> None:
    key = new_api_key("worker")
    await platform.directory.add_key(key, tenant.id)
    hand = Hand(platform, medium=1)
    hand.tenant, hand.api_key = tenant.id, key.id
    (job,) = await submit(platform, tenant, new(pool=MEDIUM))
    await hand.take()
    held = asyncio.create_task(hand.say(wait_seconds=15))
    await until(lambda: platform.dispatcher.sessions[hand.key].poll is not None)
    await suspend(platform, tenant)
    with pytest.raises(Forbidden) as told:
        await held
    assert told.value.code == TENANT_SUSPENDED
    assert hand.key not in platform.dispatcher.sessions

    async def waits() -> bool:
        return (await stored(platform, job))[0] is State.QUEUED

    await until(waits)
    assert (await sight(platform, tenant, job)).record.attempts == 0


async def test_who_takes_a_shard_over_starts_nothing_of_it(database_url: str) -> None:
    """Suspended on the first a moment before it dies: the second reads it before it grants."""
    first, second = await open_pair(database_url)
    try:
        tenant = await add_tenant(first)
        await second.directory.refresh()
        (job,) = await submit(first, tenant)
        await second.loops["directory"].stop()
        await suspend(first, tenant)
        await kill(first)
        await until(lambda: owns_all(second))
        hand = Hand(second)
        await hand.say(hello=True)
        await nothing_starts(hand)
        await second.tenant_states.resume(tenant.name)
        (lease,) = await hand.take()
        assert lease.job.id == job
    finally:
        await stopped(second)


async def test_its_schedules_do_not_tick_and_catch_up_after_it(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    other = await add_tenant(platform, "other")
    mine = await put(platform, tenant, "mine", catch_up=CatchUp.LAST)
    theirs = await put(platform, other, "theirs", catch_up=CatchUp.LAST)
    await suspend(platform, tenant)
    ticker = ticker_of(platform)
    for key in (mine, theirs):
        await turn_back(platform, key, 3)
    handled_at = (await platform.schedules.read(mine)).handled_at
    await ticker.run_once(0)
    assert len(await runs(platform, theirs)) == 1
    assert await runs(platform, mine) == []
    found = await platform.schedules.read(mine)
    assert found.handled_at == handled_at, "no tick of it is settled"
    assert found.next_at is not None
    assert found.next_at > found.handled_at, "it stands in nobody's way"
    await platform.tenant_states.resume(tenant.name)
    await turn_back(platform, mine, 3)
    await ticker.run_once(0)
    assert len(await runs(platform, mine)) == 1


async def test_what_its_transactions_committed_waits(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    await freeze(platform)
    async with shop_of(database_url, tenant) as enqueue:
        await suspend(platform, tenant)
        ids = await enqueue(2)
        await platform.outbox.run_once(read, 0)
        assert await in_jobs(platform) == []
        await platform.tenant_states.resume(tenant.name)
        await platform.outbox.run_once(read, 0)
        assert await in_jobs(platform) == sorted(str(one) for one in ids)


async def test_acts_that_its_state_does_not_allow_and_what_the_audit_tells(
    platform: Platform, tenant: Tenant
) -> None:
    states, name = platform.tenant_states, tenant.name
    with pytest.raises(Conflict, match="suspend it first"):
        await states.delete(name, may_suspend=False)
    with pytest.raises(Conflict, match="was not deleted"):
        await states.restore(name)
    with pytest.raises(NotFound):
        await states.suspend("nobody", "", cancels_running=False)
    assert (await states.resume(name)).state == "active"
    await suspend(platform, tenant)
    assert (await states.delete(name, may_suspend=False)).state == "deleted"
    with pytest.raises(Conflict, match="restore it first"):
        await states.resume(name)
    with pytest.raises(Conflict, match="deleted already"):
        await suspend(platform, tenant)
    assert (await states.restore(name)).state == "suspended"
    assert (await states.resume(name)).is_active
    async with platform.database.background() as connection:
        lines = await list_audit(connection, AuditFilter(1 << 62, 20))
    did = [one.action for one in reversed(lines) if one.subject == name]
    assert did == [
        "add_tenant", "suspend_tenant", "delete_tenant", "restore_tenant", "resume_tenant",
    ]  # fmt: skip


async def test_suspended_again_it_keeps_what_nobody_changes(
    platform: Platform, tenant: Tenant
) -> None:
    await suspend(platform, tenant, cancels=True)
    states = platform.tenant_states
    again = await states.suspend(tenant.name, None, cancels_running=None)
    assert (again.reason, again.cancels_running) == (WHY, True)
    kept = await states.suspend(tenant.name, "Another.", cancels_running=None)
    assert (kept.reason, kept.cancels_running) == (WHY, True)
    other = await states.suspend(tenant.name, "Another.", cancels_running=None, replace_reason=True)
    assert (other.reason, other.cancels_running) == ("Another.", True)
    await states.resume(tenant.name)
    anew = await states.suspend(tenant.name, None, cancels_running=None)
    assert (anew.reason, anew.cancels_running) == ("", False)
    async with platform.database.background() as connection:
        second = (await list_audit(connection, AuditFilter(1 << 62, 20)))[2]
    assert (second.before, second.after) == (f'{{"reason":"{WHY}"}}', '{"reason":"Another."}')
