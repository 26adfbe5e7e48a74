"""A tenant whose flows are being counted in, for however long, stops nobody else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.locked import held_flows, standing
from tests.postgres import connected
from tests.services.backpressure.test_connection_turns import HOT, cancel_type
from tests.services.jobs.test_bulk_runner import died, has_ended, replay_all
from tests.services.jobs.test_flows import BROKEN, flow, make, run, states
from tests.services.platform_room import Hand, add_tenant, new, submit, until
from tests.services.scheduling.test_expirer import platform_expirer_round

from fairway.core.errors import NotFound
from fairway.core.ids import ShardId
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.recording.recorder import FLOW_WRITES_MAX
from fairway.store import flows
from fairway.store.flow_locks import lock_tenant

LATE = "execute_at = now() - interval '1 h', not_after = now() - interval '1 s', on_late = 1"


async def change(platform: Platform, assignments: str, *jobs: str) -> None:
    async with platform.database.background() as connection:
        await connection.execute(
            f"UPDATE jobs SET {assignments} WHERE id = ANY($1::uuid[])", list(jobs)
        )


async def more_tenants(platform: Platform, count: int) -> list[Tenant]:
    return [await add_tenant(platform, f"more-{n}") for n in range(count)]


async def test_ends_wait_for_their_own_tenants_lock_alone(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    """More tenants' locks are held than there are connections for counting."""
    other, *more = await more_tenants(platform, 1 + FLOW_WRITES_MAX)
    own = await make(platform, tenant, 3, callback=new())
    stuck = [(await make(platform, one, 1)).jobs[0] for one in more]
    free = await make(platform, other, 1, callback=new())
    plain, lost, others = [(await submit(platform, one))[0] for one in (tenant, tenant, other)]
    hand = Hand(platform, short=7 + len(more))
    leases = {lease.job.id: lease for lease in await hand.take(7 + len(more))}
    await change(platform, "state = 5, finished_at = now()", lost)
    outcomes = [None, BROKEN, None]
    held = [
        hand.done(leases[job], how, result=b"123")
        for job, how in zip(own.jobs, outcomes, strict=True)
    ]
    held += [hand.done(leases[job]) for job in stuck]
    soon = [hand.done(leases[job]) for job in (plain, lost, others, *free.jobs)]
    async with held_flows(database_url, tenant, *more) as holder:
        await hand.say(reports=held, draining=True)
        recorded, refused = await hand.report(*soon)
        assert (recorded & {one.n for one in soon}, refused) == (
            {one.n for one in soon if one.job != lost},
            {one.n for one in soon if one.job == lost},
        )
        assert await states(platform, [free.callback or ""]) == [State.QUEUED]
        assert not {State.SUCCEEDED, State.DEAD} & {*await states(platform, own.jobs)}
        assert max([await standing(holder, HOT) for _ in range(5)]) <= 1, "of all, one may"
        assert platform.recorder.bytes_waiting >= 2 * len(b"123")
        drained = asyncio.create_task(platform.recorder.drain())
        await asyncio.sleep(0)
        assert not drained.done()
    await drained
    assert platform.recorder.bytes_waiting == 0
    assert (await hand.report(*held))[1] == set()
    assert (await flow(platform, tenant, own)).tally == (3, 2, 1, 0)


async def test_an_end_has_its_turn_at_a_lock_that_is_never_free(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    made, hand = await make(platform, tenant, 1), Hand(platform)
    (lease,) = await hand.take()
    holders = [asyncio.create_task(hold_on(database_url, tenant)) for _ in range(2)]
    try:
        await until(lambda: is_queued_at(platform))
        assert await hand.report(hand.done(lease)) == ({1}, set())
    finally:
        for one in holders:
            one.cancel()
        await asyncio.wait(holders)
    assert (await flow(platform, tenant, made)).succeeded == 1


async def hold_on(dsn: str, tenant: Tenant) -> None:
    """Holds the lock for a moment, lets who waits have it, and waits itself."""
    async with connected(dsn) as connection:
        while True:
            async with connection.transaction():
                await lock_tenant(connection, ShardId(0), tenant.id)
                await asyncio.sleep(0.02)


async def is_queued_at(platform: Platform) -> bool:
    async with platform.database.background() as connection:
        asked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        return bool(await connection.fetchval(asked))


async def test_what_is_in_no_flow_needs_no_lock(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    (dead,) = await died(platform, tenant, None)
    single, *page = await submit(platform, tenant, new(), new("page"), new("page"))
    async with held_flows(database_url, tenant):
        await platform.control.cancel(tenant.id, single)
        assert (await cancel_type(platform, tenant, "page")).cancelled == 2
        await platform.dead_letters.replay_one(tenant.id, dead, None)
    ends = await states(platform, [single, *page, dead])
    assert ends == [*[State.CANCELLED] * 3, State.QUEUED]


async def test_expiry_passes_by_whose_lock_is_held(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    await platform.loops["expirer"].stop()
    (other,) = await more_tenants(platform, 1)
    own, others = [await make(platform, one, 1) for one in (tenant, other)]
    (plain,) = await submit(platform, tenant)
    await change(platform, LATE, plain, *own.jobs, *others.jobs)
    async with held_flows(database_url, tenant):
        await platform_expirer_round(platform)
        found = await states(platform, [plain, *others.jobs, *own.jobs])
        assert found == [State.EXPIRED, State.EXPIRED, State.QUEUED]
    await platform_expirer_round(platform)
    for whose, made in ((tenant, own), (other, others)):
        assert (await flow(platform, whose, made)).cancelled == 1


async def test_a_replay_of_many_passes_by_whose_lock_is_held(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    (other,) = await more_tenants(platform, 1)
    made, hand = await make(platform, tenant, 1), Hand(platform)
    await run(hand, outcome=BROKEN)
    await hand.say(goodbye=True)
    await died(platform, other, None)
    async with held_flows(database_url, tenant):
        own, others = [await replay_all(platform, one) for one in (tenant, other)]
        await until(lambda: has_ended(platform, other, others.id))
        assert not await has_ended(platform, tenant, own.id)
    await until(lambda: has_ended(platform, tenant, own.id))
    assert (await flow(platform, tenant, made)).tally == (1, 0, 0, 0)


async def test_flows_are_forgotten_past_whose_lock_is_held(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    (other,) = await more_tenants(platform, 1)
    own, others = [await make(platform, one, 1) for one in (tenant, other)]
    since = datetime.now(UTC) + timedelta(hours=1)
    async with held_flows(database_url, tenant), connected(database_url) as connection:
        assert await flows.forget(connection, ShardId(0), since, 10) == 1
    assert (await flow(platform, tenant, own)).members == 1
    with pytest.raises(NotFound):
        await flow(platform, other, others)
