"""Times of jobs, from submission to start: due, moved, too late, and how late."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.services.platform_room import Hand, add_tenant, new, sight, stored, submit, until

from fairway.core.errors import Conflict
from fairway.core.ids import JobId
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.scheduling.timing import Wish
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform


async def submit_for(platform: Platform, tenant: Tenant, **wish: Any) -> JobId:
    (job,) = await submit(platform, tenant, new(wish=Wish(**wish)))
    return job


def now_ms(platform: Platform) -> int:
    return platform.store_clock.unix_ms()


async def test_a_delayed_job_waits_and_then_runs(platform: Platform, tenant: Tenant) -> None:
    verdicts = await platform.submissions.submit(tenant, [new(wish=Wish(delay_ms=300)), new()])
    assert [getattr(verdict, "state", "") for verdict in verdicts] == ["scheduled", "queued"]
    hand = Hand(platform, short=8)
    first, later = await hand.take(2)
    assert first.job.timing is None
    assert later.job.timing is not None
    assert now_ms(platform) >= (later.job.timing[0] or 0)


async def test_a_job_for_the_past_is_due_now(platform: Platform, tenant: Tenant) -> None:
    job = await submit_for(platform, tenant, due_ms=now_ms(platform) - 5000)
    (lease,) = await Hand(platform).take()
    assert lease.job.id == job
    assert platform.metrics.by_type.get_sample_value(
        "fairway_lateness_seconds_sum", {"type": "work"}
    ) == pytest.approx(5, abs=2)


async def test_a_far_job_is_spread_unless_it_is_exact(platform: Platform, tenant: Tenant) -> None:
    due = now_ms(platform) + 10 * 3_600_000
    spread = [await submit_for(platform, tenant, due_ms=due) for _ in range(8)]
    exact = await submit_for(platform, tenant, due_ms=due, exact=True)
    moments = set()
    for job in spread:
        found = (await sight(platform, tenant, job)).record.execute_at
        assert found is not None
        assert abs(found.timestamp() * 1000 - due) <= 60_000
        moments.add(found)
    assert len(moments) > 4
    record = (await sight(platform, tenant, exact)).record
    assert record.execute_at is not None
    assert round(record.execute_at.timestamp() * 1000) == due


async def test_a_scheduled_job_can_be_moved_and_cancelled(
    platform: Platform, tenant: Tenant
) -> None:
    job = await submit_for(platform, tenant, delay_ms=600_000)
    before = await sight(platform, tenant, job)
    moved = await platform.control.reschedule(tenant.id, job, Wish(delay_ms=1_200_000))
    assert moved.record.state == State.SCHEDULED
    assert moved.version != before.version, "its ETag tells of it"
    await platform.control.cancel(tenant.id, job)
    with pytest.raises(Conflict, match="cancelled"):
        await platform.control.reschedule(tenant.id, job, Wish(delay_ms=1))


async def test_a_job_moved_to_now_starts_at_once(platform: Platform, tenant: Tenant) -> None:
    job = await submit_for(platform, tenant, delay_ms=600_000)
    await platform.control.reschedule(tenant.id, job, Wish())
    (lease,) = await Hand(platform).take()
    assert lease.job.id == job


async def test_a_watcher_hears_of_another_time(platform: Platform, tenant: Tenant) -> None:
    job = await submit_for(platform, tenant, delay_ms=600_000)
    known = (await sight(platform, tenant, job)).version
    waiting = asyncio.create_task(
        platform.job_waits.job_when(tenant.id, job, wait_seconds=60, unlike=known)
    )
    await asyncio.sleep(0.05)
    await platform.control.reschedule(tenant.id, job, Wish(delay_ms=700_000))
    assert (await asyncio.wait_for(waiting, 30)).version != known


async def test_a_retry_waits_by_the_same_machinery(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    failed = Outcome(OutcomeKind.FAILED, 5, failure=FailureClass.APP_ERROR, delay_ms=300)
    await hand.report(hand.done(lease, failed))
    assert (await stored(platform, job))[0] is State.SCHEDULED
    hand.types = ("work",)
    (again,) = await hand.take()
    assert again.job.id == job
    assert again.job.timing is not None


# -- the caps ------------------------------------------------------------------------------------


async def test_another_tenants_herd_holds_up_nobody(platform: Platform, tenant: Tenant) -> None:
    other = await add_tenant(platform, "other")
    due = now_ms(platform) + 1500
    herd = [new(wish=Wish(due_ms=due)) for _ in range(3000)]
    await platform.submissions.submit(tenant, herd)
    single = await submit_for(platform, other, due_ms=due + 50)
    await until(lambda: is_queued(platform, single), seconds=10)
    left = await count(platform, State.SCHEDULED)
    assert left > 0, "the herd is still on its way"
    await until(lambda: nothing_scheduled(platform), seconds=20)
    assert await count(platform, State.QUEUED) == 3001


async def is_queued(platform: Platform, job: JobId) -> bool:
    return (await stored(platform, job))[0] is State.QUEUED


async def count(platform: Platform, state: State) -> int:
    async with platform.database.background() as connection:
        found: int = await connection.fetchval("SELECT count(*) FROM jobs WHERE state = $1", state)
        return found


async def nothing_scheduled(platform: Platform) -> bool:
    return await count(platform, State.SCHEDULED) == 0
