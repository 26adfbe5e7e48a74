"""Questions about jobs: what the owner knows is told, and waiting ends when there is news."""

from __future__ import annotations

import asyncio

import pytest
from tests.services.platform_room import (
    QUICK,
    Hand,
    add_tenant,
    holding,
    new,
    owner_on,
    sight,
    stored,
    submit,
)

from fairway.core.errors import NotFound, Unavailable
from fairway.core.ids import LOWEST_JOB_ID, NO_EPOCH, Epoch, JobId
from fairway.core.job import JobFilter
from fairway.core.lifecycle import State
from fairway.core.object_storage.object_names import ObjectFacts
from fairway.core.run.log_chunk import LogPlace
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.runtime.settings import replaced
from fairway.services.jobs.lookup import JobSight
from fairway.services.platform import Platform
from fairway.store.checkpoints import Saved


def wait(
    platform: Platform, tenant: Tenant, job: JobId, seconds: float, unlike: str | None = None
) -> asyncio.Task[JobSight]:
    asked = platform.job_waits.job_when(tenant.id, job, wait_seconds=seconds, unlike=unlike)
    return asyncio.create_task(asked)


async def test_a_job_is_found_by_its_tenant_alone(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    assert (await sight(platform, tenant, job)).record.state == State.QUEUED
    stranger = await add_tenant(platform, "stranger")
    with pytest.raises(NotFound):
        await sight(platform, stranger, job)


async def test_half_of_a_tenant_that_moves_is_not_taken_for_all_of_it(
    platform: Platform, tenant: Tenant
) -> None:
    """Whoever waited or followed before it began: it is not there, but it is not gone."""
    (job,) = await submit(platform, tenant)
    async with platform.database.background() as connection:
        await connection.execute("UPDATE jobs SET shard = shard + 1")
    platform.tenant_shards.learn(tenant.id, None, is_moving=True)
    asked = (
        lambda: wait(platform, tenant, job, 0),
        lambda: platform.flows.look(tenant.id, job),
        lambda: platform.job_logs.chunks(tenant.id, job, LogPlace(NO_EPOCH, 0), None),
        lambda: platform.events.reader.page(tenant.id, 0, 1),
    )
    for ask in asked:
        with pytest.raises(Unavailable) as refused:
            await ask()
        assert refused.value.code == "TENANT_MOVING"


async def test_a_short_job_is_seen_running_before_it_is_written(database_url: str) -> None:
    async with owner_on(database_url, replaced(QUICK, lazy_running_ms=60_000)) as platform:
        tenant = await add_tenant(platform)
        (job,) = await submit(platform, tenant)
        (lease,) = await Hand(platform).take()
        assert (await stored(platform, job))[0] is State.QUEUED
        seen = (await sight(platform, tenant, job)).record
        assert (seen.state, seen.epoch) == (State.RUNNING, lease.epoch)
        assert seen.started_at is not None


async def test_progress_is_seen_and_changes_the_version(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    before = await sight(platform, tenant, job)
    waiting = wait(platform, tenant, job, 60, before.version)
    await asyncio.sleep(0.02)
    await hand.say(running=[holding(lease)._replace(progress=b'{"done":1}')])
    after = await asyncio.wait_for(waiting, 30)
    assert after.progress == b'{"done":1}'
    assert after.version != before.version


async def test_a_page_joins_what_runs(platform: Platform, tenant: Tenant) -> None:
    jobs = await submit(platform, tenant, new(), new())
    (lease,) = await Hand(platform, short=1).take()
    everything = JobFilter(
        "f" * 8 + "-ffff" * 3 + "-" + "f" * 12, LOWEST_JOB_ID, None, None, None, 9
    )
    page = await platform.job_lookup.jobs(tenant.id, everything)
    states = {one.record.id: one.record.state for one in page}
    assert states == {jobs[0]: State.RUNNING, jobs[1]: State.QUEUED}
    assert lease.job.id == jobs[0]


async def test_the_version_tells_a_discard_and_a_checkpoint(
    platform: Platform, tenant: Tenant
) -> None:
    """Whatever a tenant can see of a job changes its ETag."""
    (dead,) = await submit(platform, tenant)
    hand = Hand(platform, short=1)
    (lease,) = await hand.take()
    fatal = Outcome(OutcomeKind.FAILED, 1, failure=FailureClass.PERMANENT)
    await hand.report(hand.done(lease, fatal))
    before = (await sight(platform, tenant, dead)).version
    await platform.dead_letters.discard_one(tenant.id, dead)
    assert (await sight(platform, tenant, dead)).version != before
    saved = Saved(Epoch(1), 1, ObjectFacts("name", 1, b""), platform.store_clock.now())
    running = (await sight(platform, tenant, dead))._replace(checkpoint=saved)
    later = running._replace(checkpoint=saved._replace(number=2))
    assert len({running._replace(checkpoint=None).version, running.version, later.version}) == 3
