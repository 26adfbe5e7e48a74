"""Jobs whose last moment to start has passed: skipped with an event, or run if they asked to."""

from __future__ import annotations

import asyncio

import pytest
from tests.services.platform_room import Hand, stored, submit, told_events, until
from tests.services.test_times import now_ms, submit_for

from fairway.core.ids import JobId, PoolId, TenantId
from fairway.core.lifecycle import State
from fairway.core.scheduling.timing import OnLate
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.scheduling.expirer import (
    EVENTS_PER_TENANT,
    NEWS_MAX,
    NEWS_TENANT_MAX,
    Expirer,
    LateExecution,
    late_events,
    within_bounds,
)


@pytest.fixture
def told(platform: Platform) -> list[LateExecution]:
    """What was announced, as it comes."""
    heard: list[LateExecution] = []
    lateness, tell = platform.lateness, platform.lateness.tell

    def listen(action: str, tenant: int, job: JobId, late_ms: int | None) -> None:
        tell(action, TenantId(tenant), job, late_ms)
        heard.extend(lateness.news[-1:] if action != "run" else [])

    lateness.tell = listen  # type: ignore[method-assign]  # heard before the events are written
    return heard


async def is_expired(platform: Platform, job: JobId) -> bool:
    return (await stored(platform, job))[0] is State.EXPIRED


async def test_a_late_job_is_skipped_with_an_event(
    platform: Platform, tenant: Tenant, told: list[LateExecution]
) -> None:
    last = now_ms(platform) + 200
    job = await submit_for(platform, tenant, not_after_ms=last)
    await until(lambda: is_expired(platform, job))
    assert [(late.job, late.action) for late in told] == [(job, "skipped")]
    assert (
        platform.dispatcher.backlog.counts.depth(tenant.id, (PoolId(1), PoolId(2), PoolId(3))) == 0
    )
    await until(lambda: has_event(platform, tenant, job))


async def has_event(platform: Platform, tenant: Tenant, job: JobId) -> bool:
    return [event.job for event in await told_events(platform, tenant, "job.late")] == [job]


def test_very_many_late_jobs_are_counted_in_one_event() -> None:
    late = [LateExecution(TenantId(1), JobId(f"j{n}"), 5, "skipped") for n in range(500)]
    events = late_events([*late, LateExecution(TenantId(2), JobId("x"), None, "flagged")])
    assert len(events) == EVENTS_PER_TENANT + 2
    assert "480 more" in next(event.detail for event in events if event.subject == "jobs")


async def test_a_late_job_never_reaches_a_worker(
    platform: Platform, tenant: Tenant, told: list[LateExecution]
) -> None:
    await platform.loops["expirer"].stop()  # so that the grant itself must see it
    late = await submit_for(platform, tenant, not_after_ms=now_ms(platform) - 1)
    (good,) = await submit(platform, tenant)
    hand = Hand(platform)
    leases = await hand.take()
    assert [lease.job.id for lease in leases] == [good]
    await until(lambda: is_expired(platform, late))
    assert [(one.job, one.action) for one in told] == [(late, "skipped")]
    assert hand.key in platform.dispatcher.sessions
    assert platform.dispatcher.sessions[hand.key].in_use == {1: 1}, "no slot is lost"


@pytest.mark.parametrize(("rule", "announced"), [(OnLate.FLAG, ["flagged"]), (OnLate.RUN, [])])
async def test_a_late_job_runs_if_asked_to(
    platform: Platform,
    tenant: Tenant,
    told: list[LateExecution],
    rule: OnLate,
    announced: list[str],
) -> None:
    last = now_ms(platform) - 1
    job = await submit_for(platform, tenant, not_after_ms=last, on_late=int(rule))
    (lease,) = await Hand(platform).take()
    assert lease.job.id == job
    assert [late.action for late in told] == announced
    action = "flagged" if announced else "run"
    counted = platform.metrics.registry.get_sample_value(
        "fairway_late_executions_total", {"action": action}
    )
    assert counted == 1


async def test_a_running_job_is_not_expired(platform: Platform, tenant: Tenant) -> None:
    """A short job runs before the store knows it; its last moment is one to start, not to end."""
    await platform.loops["lease_writer"].stop()
    job = await submit_for(platform, tenant, not_after_ms=now_ms(platform) + 500)
    hand = Hand(platform)
    (lease,) = await hand.take()
    await asyncio.sleep(0.7)
    await platform.loops["expirer"].stop()
    await platform_expirer_round(platform)
    assert (await stored(platform, job))[0] is State.QUEUED
    assert await hand.report(hand.done(lease)) == ({1}, set())


async def platform_expirer_round(platform: Platform) -> None:
    expirer = Expirer(platform.database, platform.dispatcher, platform.watchers, platform.lateness)
    await expirer.run_once(0)


def test_very_many_late_jobs_of_one_tenant_leave_room_for_anothers() -> None:
    flood = [LateExecution(TenantId(1), JobId(str(n)), 5, "skipped") for n in range(3 * NEWS_MAX)]
    few = [LateExecution(TenantId(2), JobId(str(n)), 5, "skipped") for n in range(7)]
    kept = within_bounds(flood + few)
    assert [one for one in kept if one.tenant == 2] == few
    assert len(kept) == NEWS_TENANT_MAX + len(few)
    crowd = [LateExecution(TenantId(n), JobId(str(n)), 5, "skipped") for n in range(2 * NEWS_MAX)]
    assert len(within_bounds(crowd)) == NEWS_MAX
