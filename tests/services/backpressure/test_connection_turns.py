"""Turns at the hot connections: what requests ask of single jobs leaves the job path its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace

import pytest
from tests.locked import held_rows, somebody_stands, standing
from tests.services.platform_room import QUICK, Hand, add_tenant, new, owner_on, submit

from fairway.api.filters import HIGHEST_JOB_ID
from fairway.core.errors import Unavailable
from fairway.core.ids import LOWEST_JOB_ID, Epoch, ShardId, shard_of
from fairway.core.job import JobFilter
from fairway.core.lifecycle import State
from fairway.core.scheduling.timing import Wish
from fairway.core.tenant import Tenant
from fairway.services.jobs.control import Cancelled
from fairway.services.jobs.lookup import JobSight
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import Holding, News
from fairway.store import history

TOMORROW = Wish(delay_ms=86_400_000)
HOT = "fairway-hot"
SOON_SECONDS = 1.5  # before whoever stands at a lock gives up
FLOOD = 300
WORKERS = 40
NAMED = 200  # leases that each of them makes up


async def test_many_moves_of_one_job_leave_the_connections_to_others(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    other = await add_tenant(platform, "other")
    (job,) = await submit(platform, tenant, new(wish=TOMORROW))
    moves = platform.control.reschedule
    async with held_rows(database_url, job) as holder:
        flood = [asyncio.create_task(moves(tenant.id, job, TOMORROW)) for _ in range(FLOOD)]
        await somebody_stands(holder, HOT)
        async with asyncio.timeout(SOON_SECONDS):
            for _ in range(20):
                assert len(await submit(platform, other)) == 1
        assert await standing(holder, HOT) == 1
    moved = [one for one in await answers(flood) if isinstance(one, JobSight)]
    assert {one.record.state for one in moved} <= {State.SCHEDULED}
    assert (await moves(tenant.id, job, TOMORROW)).record.state == State.SCHEDULED


async def answers(asked: Sequence[Awaitable[object]]) -> list[object]:
    """What became of each: done, or told to come back."""
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [one for one in found if isinstance(one, BaseException) and not is_later(one)] == []
    return list(found)


def is_later(error: BaseException) -> bool:
    return isinstance(error, Unavailable)


async def test_who_waits_in_vain_hears_for_what(database_url: str) -> None:
    async with owner_on(database_url, replace(QUICK, store_wait_seconds=0.6)) as platform:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant, new(wish=TOMORROW))
        async with platform.turns._tenants.held(("change", tenant.id)):
            with pytest.raises(Unavailable, match="Too many changes of jobs ") as refused:
                await platform.control.cancel(tenant.id, job)
            assert refused.value.code == "OVERLOADED"
        async with platform.turns._pages.held("another's"):
            with pytest.raises(Unavailable, match="Too many pages of jobs ") as refused:
                await cancel_type(platform, tenant, "work")
        assert (await platform.control.cancel(tenant.id, job)).record.state == State.CANCELLED


async def cancel_type(platform: Platform, tenant: Tenant, job_type: str) -> Cancelled:
    number = platform.directory.type_ids[job_type]
    wanted = JobFilter(HIGHEST_JOB_ID, LOWEST_JOB_ID, [0, 1], number, None, 100)
    async with platform.database.slow(tenant.id) as connection:
        part = await history.live_jobs(connection, ShardId(0), tenant.id, wanted)
    return await platform.control.cancel_these(tenant.id, ShardId(0), part.jobs)


async def test_single_jobs_do_not_wait_behind_pages(
    platform: Platform, tenant: Tenant, database_url: str
) -> None:
    """Two pages that take long, and a single job each of who asked for one and who did not."""
    others = [await add_tenant(platform, name) for name in ("second", "third")]
    stuck = [await submit(platform, one, new("stuck")) for one in (tenant, others[0])]
    single = {one.id: (await submit(platform, one))[0] for one in (tenant, others[1])}
    async with held_rows(database_url, *(job for (job,) in stuck)) as holder:
        pages = [
            asyncio.create_task(cancel_type(platform, one, "stuck")) for one in (tenant, others[0])
        ]
        await somebody_stands(holder, HOT)
        async with asyncio.timeout(SOON_SECONDS):
            for whose, job in single.items():
                assert (await platform.control.cancel(whose, job)).record.state == State.CANCELLED
        assert await standing(holder, HOT) == 1
    done = [one.cancelled for one in await answers(pages) if isinstance(one, Cancelled)]
    assert set(done) <= {1}


# -- workers ---------------------------------------------------------------------------------------


def made_up(platform: Platform, tenant: Tenant) -> list[Holding]:
    ids = platform.submissions.ids.make(ShardId(0), NAMED)
    assert shard_of(ids[0]) == 0
    return [Holding(job, tenant.id, Epoch(1), "0" * 32) for job in ids]


async def name_all(platform: Platform, tenant: Tenant, *, is_own: bool = True) -> News | None:
    """A worker comes, and names leases that nobody knows."""
    hand = Hand(platform, short=1)
    hand.tenant = tenant.id if is_own else None
    await hand.say(hello=True)
    hand.names_all = True
    return await hand.say(running=made_up(platform, tenant))


async def test_leases_that_workers_make_up_leave_the_connections_to_others(
    platform: Platform, tenant: Tenant
) -> None:
    most_waiting = 0
    flood = asyncio.gather(*(name_all(platform, tenant) for _ in range(WORKERS)))
    while not flood.done():
        most_waiting = max(most_waiting, platform.database.waiting)
        await asyncio.sleep(0)
    assert most_waiting <= WORKERS // 4, "the tenant's own wait elsewhere; loops of ours come, too"
    for news in await flood:
        assert news is not None
        assert len(news.revoked) == NAMED


async def test_shared_workers_have_turns_of_their_own(database_url: str) -> None:
    async with owner_on(database_url, replace(QUICK, store_wait_seconds=0.6)) as platform:
        tenant, turns = await add_tenant(platform), platform.turns
        async with turns._tenants.held("one"), turns._tenants.held("another"):
            news = await name_all(platform, tenant, is_own=False)
            assert news is not None
            assert len(news.revoked) == NAMED
            with pytest.raises(Unavailable, match="look-ups of leases"):
                await name_all(platform, tenant)
