"""From what happened to a tenant's log: in turn, by the owner alone, and not held up by others."""

from __future__ import annotations

import pytest
from tests.postgres import connected
from tests.services.platform_room import (
    Hand,
    add_tenant,
    freeze,
    kill,
    new,
    open_pair,
    owner_on,
    stopped,
    submit,
    told_events,
    until,
)

from fairway.core.events.event import NewEvent
from fairway.core.events.event_filter import EventFilter
from fairway.core.ids import ShardId, TenantId
from fairway.core.tenant import Tenant
from fairway.services.events import sequencer
from fairway.services.platform import Platform
from fairway.store.events.log import add_notices

ALL = EventFilter()


async def note(platform: Platform, tenant: TenantId, count: int = 1) -> None:
    async with platform.database.background() as connection:
        notices = [NewEvent(tenant, "job.late", "work", f"{n}") for n in range(count)]
        await add_notices(connection, notices)


async def length(platform: Platform, tenant: TenantId) -> int:
    return (await platform.events.reader.page(tenant, 0, 1)).last


async def test_a_job_is_heard_of_from_acceptance_to_its_end(
    platform: Platform, tenant: Tenant
) -> None:
    """By the loop alone, as in production."""
    await platform.events.settings.set_job_events(tenant.id, True)
    tenant = platform.directory.tenants[tenant.id]
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    await hand.report(hand.done(lease))

    async def is_told() -> bool:
        found = await platform.events.reader.following(tenant.id, ALL, 0, 10)
        kinds = [event.kind for event in found.events if event.kind != "job.started"]
        return kinds == ["job.accepted", "job.succeeded"]

    await until(is_told)
    for event in await told_events(platform, tenant):
        assert (event.job, event.subject, event.data["pool"]) == (job, "work", "short")


async def test_an_end_that_is_asked_for_wakes_it(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    await platform.events.settings.set_job_events(tenant.id, True)
    await submit(platform, platform.directory.tenants[tenant.id])
    hand, one, now_us = Hand(platform), platform.events.sequencer, platform.clock.now_us() + 10**7
    (lease,) = await hand.take()
    while await one.run_once(now_us) != sequencer.ASKED_US / 1e6:
        now_us += sequencer.BUSY_US
    await hand.report(hand.done(lease))
    await until(lambda: is_written(platform))
    assert await one.run_once(now_us + sequencer.GATHER_US) == sequencer.BUSY_US / 1e6
    found = await platform.events.reader.following(tenant.id, ALL, 0, 10)
    assert found.events[-1].kind == "job.succeeded"


async def is_written(platform: Platform) -> bool:
    async with platform.database.background() as connection:
        return bool(await connection.fetchval("SELECT EXISTS (SELECT FROM event_inbox)"))


async def test_a_flood_of_one_tenant_delays_nobody_elses_event(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await freeze(platform)
    monkeypatch.setattr(sequencer, "EVENTS_PER_ROUND", 100)
    quiet = await add_tenant(platform, "quiet")
    flood = 250
    await note(platform, tenant.id, flood)
    await note(platform, quiet.id)
    platform.events.sequencer.written(ShardId(0))
    now_us = platform.clock.now_us() + sequencer.GATHER_US
    rest = await platform.events.sequencer.run_once(now_us)
    assert rest == 0, "there is more"
    assert await length(platform, quiet.id) == 1
    assert 0 < await length(platform, tenant.id) < flood
    assert len(await told_events(platform, tenant)) == flood


async def test_very_many_tenants_take_turns(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await freeze(platform)
    monkeypatch.setattr(sequencer, "TENANTS_PER_ROUND", 2)
    monkeypatch.setattr(sequencer, "EVENTS_PER_ROUND", 4)
    tenants = [TenantId(n) for n in (101, 102, 103, 104, 105)]
    for one in tenants:
        await note(platform, one, 5)
    now_us = platform.clock.now_us() + 10**7
    for _ in range(3):
        assert await platform.events.sequencer.run_once(now_us) == 0
    assert [await length(platform, one) for one in tenants] == [2, 2, 2, 2, 4]


async def test_a_tenant_whose_events_cannot_be_moved_is_set_aside_alone(
    database_url: str,
) -> None:
    async with owner_on(database_url) as platform:
        await freeze(platform)
        async with connected(database_url) as owner:
            await owner.execute(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE check_violation USING MESSAGE = 'not this one'; END $$"
            )
            await owner.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON event_heads FOR EACH ROW"
                " WHEN (NEW.tenant = 102) EXECUTE FUNCTION refuse()"
            )
            tenants = [TenantId(n) for n in (101, 102, 103)]
            for one in tenants:
                await note(platform, one, 2)
            now_us = platform.clock.now_us() + 10**7
            await platform.events.sequencer.run_once(now_us)
            assert [await length(platform, one) for one in tenants] == [2, 0, 2]
            assert await platform.events.sequencer.run_once(now_us + 10**6) > 0, "left alone"
            await owner.execute("DROP FUNCTION refuse CASCADE")
        await platform.events.sequencer.run_once(now_us + 40 * 10**6)
        assert await length(platform, tenants[1]) == 2


async def test_another_owner_goes_on_where_the_first_was(database_url: str) -> None:
    first, second = await open_pair(database_url)
    try:
        await note(first, TenantId(7), 3)
        await until(lambda: is_long(first, 3))
        await freeze(first)
        await note(first, TenantId(7), 2)
        await until(lambda: is_long(second, 5))
        await first.events.sequencer.run_once(first.clock.now_us() + 10**7)  # its term is over
        page = await second.events.reader.page(TenantId(7), 0, 10)
        assert [event.position for event in page.events] == [1, 2, 3, 4, 5]
    finally:
        await kill(first)
        await stopped(second)


async def is_long(platform: Platform, count: int) -> bool:
    return await length(platform, TenantId(7)) == count


async def test_nobody_asks_often_where_nobody_asked_for_events(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    one, now_us = platform.events.sequencer, platform.clock.now_us() + 10**7
    assert await one.run_once(now_us) == sequencer.IDLE_US / 1e6
    assert await one.run_once(now_us + 400_000) == pytest.approx(0.35)
    await submit(platform, tenant, new())
    assert await one.run_once(now_us + 500_000) == pytest.approx(0.25), "and no job wakes it"
    await platform.events.settings.set_job_events(tenant.id, True)
    assert await one.run_once(now_us + 2 * 10**6) == sequencer.ASKED_US / 1e6
    await submit(platform, platform.directory.tenants[tenant.id], new())
    assert await one.run_once(now_us + 2 * 10**6 + sequencer.GATHER_US) == sequencer.BUSY_US / 1e6
    assert await length(platform, tenant.id) == 1
