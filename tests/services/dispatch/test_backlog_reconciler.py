"""The sweeper and the refiller: what nobody told us of is found, and nothing is found twice."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.services.platform_room import (
    SHORT,
    Hand,
    freeze,
    new,
    sight,
    stored,
    submit,
)
from tests.store.rows import new_job

from fairway.core.backlog import deferred
from fairway.core.ids import JobId, ShardId, TenantId, make_job_id
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.services.dispatch.backlog_reconciler import BacklogReconciler
from fairway.services.dispatch.pool_shares import FREE_TENANTS_IN_MEMORY
from fairway.services.dispatch.refiller import CROWD_SECONDS, IDLE_SECONDS, Refiller
from fairway.services.platform import Platform
from fairway.services.sessions.sessions import End
from fairway.store import submissions


async def insert(platform: Platform, tenant: Tenant, job_id: JobId | None = None) -> QueuedJob:
    """Write a job behind the dispatcher's back, as another server would."""
    await platform.directory.know_types(["work"])
    job = new_job(tenant=tenant.id, type=platform.directory.type_ids["work"])
    job = replace(job, id=job_id or job.id)
    async with platform.database.hot() as connection:
        await submissions.insert_jobs(connection, ShardId(0), [job])
    return job


async def sweep(platform: Platform) -> None:
    """One round of the sweeper, and reads until there is nothing more to read."""
    await BacklogReconciler(
        platform.database, platform.dispatcher, lambda: platform.ownership.has_peers
    ).run_once(0)
    refiller = Refiller(platform.database, platform.dispatcher)
    while await refiller.run_once(0) == 0:
        pass


async def test_a_job_written_behind_our_back_is_found(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    job = await insert(platform, tenant)
    assert platform.dispatcher.backlog.counts.ready(SHORT, tenant.id) == 0
    await sweep(platform)
    (lease,) = await Hand(platform).take()
    assert lease.job.id == job.id


async def test_a_late_commit_with_an_id_before_the_cursor_is_found(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    await submit(platform, tenant, new(), new())
    hand = Hand(platform, short=10)
    known = await hand.take(2)
    first = known[0].job.id
    early = make_job_id(ShardId(0), int(first[:8] + first[9:13], 16) - 5000, 1, 1)
    late = await insert(platform, tenant, early)
    await sweep(platform)
    news = await hand.say()
    assert news is not None
    assert [lease.job.id for lease in news.leases] == [late.id]


async def test_what_is_known_or_leased_is_no_news(platform: Platform, tenant: Tenant) -> None:
    await freeze(platform)
    await submit(platform, tenant, new(), new(), new())
    (lease,) = await Hand(platform, short=1).take()
    for _ in range(3):
        await sweep(platform)
    assert platform.dispatcher.backlog.counts.ready(SHORT, tenant.id) == 2
    rest = await Hand(platform, short=10).take(2)
    assert lease.job.id not in {other.job.id for other in rest}
    assert len({other.job.id for other in rest}) == 2


async def test_a_job_whose_end_is_on_its_way_to_disk_is_not_granted_again(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row says `queued` until the commit: the sweep must not take that for news."""
    await freeze(platform)
    (job,) = await submit(platform, tenant)
    hand = Hand(platform, short=5)
    (lease,) = await hand.take()
    ends: list[End] = []
    monkeypatch.setattr(platform.recorder, "record", ends.extend)
    await hand.say(reports=[hand.done(lease)])
    await sweep(platform)
    news = await hand.say()
    assert news is not None
    assert news.leases == []
    monkeypatch.undo()
    platform.recorder.record(ends)
    await platform.recorder.drain()
    assert (await sight(platform, tenant, job)).record.state == State.SUCCEEDED


async def test_a_read_that_began_before_an_end_was_recorded_brings_nothing_back(
    platform: Platform, tenant: Tenant
) -> None:
    """The rows it saw are old by the time it ends; the job has run and is done."""
    await freeze(platform)
    (job,) = await submit(platform, tenant)
    hand = Hand(platform, short=5)
    (lease,) = await hand.take()
    backlog = platform.dispatcher.backlog
    key = next(iter(backlog._tenants[SHORT, TenantId(tenant.id)].streams.values())).key
    backlog.noticed(key, job)
    ((stream, asked),) = backlog.reads.begin(1, platform.clock.now_us())
    seen = [lease.job]  # what the read's snapshot holds
    await hand.report(hand.done(lease))
    backlog.reads.end(stream, seen, asked, platform.dispatcher.leases, platform.clock.now_us())
    platform.dispatcher.windows().refilled([key])
    news = await hand.say(hello=True)
    assert news is not None
    assert news.leases == []
    assert (await stored(platform, job))[0] is State.SUCCEEDED


async def test_a_refiller_without_work_rests(platform: Platform) -> None:
    await freeze(platform)
    refiller = Refiller(platform.database, platform.dispatcher)
    assert await refiller.run_once(0) == IDLE_SECONDS


async def test_a_backlog_larger_than_its_window_is_read_to_the_end(
    platform: Platform, tenant: Tenant
) -> None:
    limits = platform.dispatcher.backlog.windows.limits
    object.__setattr__(limits, "jobs_total", 20)
    object.__setattr__(limits, "jobs_per_read", 8)
    jobs = await submit(platform, tenant, *[new()] * 100)
    assert platform.dispatcher.backlog.windows.jobs_held <= 20
    hand = Hand(platform, short=7)
    taken: list[str] = []
    while len(taken) < len(jobs):
        for lease in await hand.take():
            taken.append(lease.job.id)
            await hand.say(reports=[hand.done(lease)])
        assert platform.dispatcher.backlog.windows.jobs_held <= 20
    assert taken == jobs


async def test_free_tenants_outside_a_crowded_pool_come_in_a_few_at_a_time(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    platform.dispatcher.backlog.reading._is_crowded = lambda pool: True
    platform.dispatcher.set_entitlement(tenant._replace(fair_group="free"))
    job = await insert(platform, tenant)
    await Hand(platform).say(hello=True)
    await BacklogReconciler(
        platform.database, platform.dispatcher, lambda: platform.ownership.has_peers
    ).run_once(0)
    refiller = Refiller(platform.database, platform.dispatcher)
    refiller._crowd_at_us = 1_000_000
    assert await refiller.run_once(900_000) == 0.1  # nobody hurries: not yet
    assert platform.dispatcher.backlog.counts.ready(SHORT, tenant.id) == 0
    assert await refiller.run_once(1_000_000) == 0.0
    assert refiller._crowd_at_us == 1_000_000 + round(CROWD_SECONDS * 1e6)
    (lease,) = await Hand(platform).take()
    assert lease.job.id == job.id


async def test_a_pool_is_crowded_when_very_many_free_tenants_wait(
    platform: Platform, tenant: Tenant
) -> None:
    await freeze(platform)
    shares = platform.dispatcher.shares
    for number in range(FREE_TENANTS_IN_MEMORY):
        assert not shares.is_crowded(SHORT)
        shares.set_entitlement(tenant._replace(id=TenantId(1000 + number), fair_group="free"), 0)
        shares[SHORT].wake(TenantId(1000 + number), 0)
    assert shares.is_crowded(SHORT)


async def test_a_tenant_with_more_streams_than_may_be_is_read_in_turn(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await freeze(platform)
    monkeypatch.setattr(deferred, "STREAMS_MAX", 10)
    names = [f"kind-{number}" for number in range(40)]
    jobs = await submit(platform, tenant, *[new(name) for name in names])
    backlog = platform.dispatcher.backlog
    assert len(list(backlog.counts.streams_of(tenant.id, [SHORT]))) == 10
    assert backlog.counts.depth(tenant.id, [SHORT]) == 40
    hand = Hand(platform, names, short=100)
    ran: list[str] = []
    for turn in range(12):
        news = await hand.say(hello=turn == 0)
        assert news is not None
        ran += [lease.job.id for lease in news.leases]
        if news.leases:
            await hand.report(*[hand.done(lease) for lease in news.leases])
        await sweep(platform)
        assert len(list(backlog.counts.streams_of(tenant.id, [SHORT]))) <= 10
    assert sorted(ran) == sorted(jobs)
    assert backlog.counts.depth(tenant.id, [SHORT]) == 0
