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
from fairway.core.scheduling.timing import OnLate, Wish
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.scheduling.expirer import (
    EVENTS_PER_TENANT,
    Expirer,
    LateExecution,
    late_events,
)
from fairway.store.events import list_events


@pytest.fixture
def told(platform: Platform) -> list[LateExecution]:
    """What was announced, as it comes."""
    heard: list[LateExecution] = []
    lateness, tell = platform.lateness, platform.lateness.tell

    def listen(action: str, tenant: int, job: JobId, late_ms: int | None) -> None:
        tell(action, tenant, job, late_ms)
        heard.extend(lateness.news[-1:] if action != "run" else [])

    lateness.tell = listen  # type: ignore[method-assign]  # heard before the events are written
    return heard


async def submit_for(platform: Platform, tenant: Tenant, **wish: Any) -> JobId:
    (job,) = await submit(platform, tenant, new(wish=Wish(**wish)))
    return job


def now_ms(platform: Platform) -> int:
    return platform.store_clock.unix_ms()


async def is_expired(platform: Platform, job: JobId) -> bool:
    return (await stored(platform, job))[0] is State.EXPIRED


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
        platform.job_waits.job_when(tenant.id, job, wait_seconds=8, unlike=known)
    )
    await asyncio.sleep(0.05)
    await platform.control.reschedule(tenant.id, job, Wish(delay_ms=700_000))
    assert (await asyncio.wait_for(waiting, 5)).version != known


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


# -- too late ------------------------------------------------------------------------------------


async def test_a_late_job_is_skipped_with_an_event(
    platform: Platform, tenant: Tenant, told: list[LateExecution]
) -> None:
    last = now_ms(platform) + 200
    job = await submit_for(platform, tenant, not_after_ms=last)
    await until(lambda: is_expired(platform, job))
    assert [(late.job, late.action) for late in told] == [(job, "skipped")]
    assert platform.dispatcher.backlog.counts.depth(tenant.id, (1, 2, 3)) == 0
    await until(lambda: has_event(platform, tenant, job))


async def has_event(platform: Platform, tenant: Tenant, job: JobId) -> bool:
    async with platform.database.background() as connection:
        found = await list_events(connection, tenant.id, 2**60, "late_execution", 10)
    return [event.subject for event in found] == [job]


def test_very_many_late_jobs_are_counted_in_one_event() -> None:
    late = [LateExecution(1, JobId(f"j{n}"), 5, "skipped") for n in range(500)]
    events = late_events([*late, LateExecution(2, JobId("x"), None, "flagged")])
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
