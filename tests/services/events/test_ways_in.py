"""Jobs carry the mark whichever way they came in, where their tenant asked; and no others do."""

from __future__ import annotations

import pytest
from tests.services.jobs.test_flows import chain, make
from tests.services.platform_room import Hand, add_tenant, another_directory, new, submit, until
from tests.services.scheduling.test_schedules import put
from tests.services.submit.test_follow_ups import follow_up, wants
from tests.services.submit.test_outbox import read, shop_of

from fairway.core.job import JobMarks, with_events
from fairway.core.scheduling.timing import Wish
from fairway.core.tenant import Tenant
from fairway.core.unique import UniqueWish
from fairway.services.platform import Platform
from fairway.services.submit.flow_intake import FlowPage

TAGGED = JobMarks(["nightly"], None)


async def marked(platform: Platform, tenant: Tenant) -> list[bool]:
    """Of each job whether it carries the mark."""
    async with platform.database.background() as connection:
        rows = await connection.fetch("SELECT events FROM jobs WHERE tenant = $1", tenant.id)
    return [row["events"] is not None for row in rows]


async def come_in(platform: Platform, tenant: Tenant, dsn: str) -> int:
    """By every way that there is; answers how many jobs that makes."""
    await submit(platform, tenant)
    await submit(platform, tenant, *[new() for _ in range(20)])
    await submit(platform, tenant, new(idempotency_key="k", body_hash=b"h"))
    await submit(platform, tenant, new(idempotency_key="k", body_hash=b"h"))  # the same again
    await submit(platform, tenant, new(wish=Wish(delay_ms=600_000)), new(marks=TAGGED))
    await submit(platform, tenant, new(unique=UniqueWish(b"d" * 16, 0b111, 60_000)))
    await chain(platform, tenant, 3, callback=new())
    group = await make(platform, tenant, 2, is_open=True)
    await platform.flow_intake.add_page(tenant, group.id, FlowPage(2, [new()], is_last=True))
    async with shop_of(dsn, tenant) as enqueue:
        await enqueue(2)
    await platform.outbox.run_once(read, 0)
    key = await put(platform, tenant)
    await platform.schedules.trigger(key)
    return 1 + 20 + 1 + 2 + 1 + 4 + 3 + 2 + 1


@pytest.mark.parametrize("is_asked", [True, False])
async def test_every_way_in(
    platform: Platform, tenant: Tenant, database_url: str, *, is_asked: bool
) -> None:
    if is_asked:
        await platform.events.settings.set_job_events(tenant.id, True)
    tenant = platform.directory.tenants[tenant.id]
    count = await come_in(platform, tenant, database_url)
    assert await marked(platform, tenant) == [is_asked] * count


@pytest.mark.parametrize("is_asked", [True, False])
async def test_follow_ups_of_a_run(platform: Platform, tenant: Tenant, *, is_asked: bool) -> None:
    await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    if is_asked:
        await platform.events.settings.set_job_events(tenant.id, True)
    wanted = wants(lease, follow_up(), follow_up(marks=TAGGED))
    await hand.report(hand.done(lease, wants=wanted))
    assert sorted(await marked(platform, tenant)) == [False, is_asked, is_asked]


async def test_one_job_may_ask_for_itself(platform: Platform, tenant: Tenant) -> None:
    await submit(platform, tenant, new(), new(marks=with_events(TAGGED)), new(marks=TAGGED))
    assert sorted(await marked(platform, tenant)) == [False, False, True]


async def test_other_servers_hear_of_the_choice(platform: Platform, tenant: Tenant) -> None:
    elsewhere = another_directory(platform.database)
    await elsewhere.run_once(0)
    other = await add_tenant(platform, "other")
    settings = platform.events.settings
    for wanted in (True, True, False):
        await settings.set_job_events(tenant.id, wanted)
        assert settings.job_events(tenant.id) is wanted
        await elsewhere.run_once(0)
        assert elsewhere.tenants[tenant.id].job_events is wanted
        assert elsewhere.with_job_events == ({tenant.id} if wanted else set())
    assert not settings.job_events(other.id)
    await until(lambda: platform.directory.with_job_events == set())
