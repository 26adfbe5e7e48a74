"""The clock against declarations: overrun jobs keep their lease, drifting types change pool."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.services.platform_room import (
    MEDIUM,
    SHORT,
    Hand,
    new,
    sight,
    stored,
    submit,
    told_events,
    until,
)

from fairway.core.audit import AuditFilter
from fairway.core.lifecycle import State
from fairway.core.pool_classifier import RUNS_MIN
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.registry.job_types import Registry

S = 1_000_000


async def finish(
    platform: Platform, tenant: Tenant, count: int, ran_us: int, own: Tenant | None = None
) -> None:
    """So many jobs that say they ran for so long; perhaps at a worker of the tenant's own."""
    await submit(platform, tenant, *[new() for _ in range(count)])
    hand = Hand(platform, short=count, medium=count)
    hand.tenant = own.id if own else None
    leases = await hand.take(count)
    for lease in leases:
        lease.granted_us -= ran_us  # a run took no longer than its lease is old
    await hand.report(*[hand.done(lease, ran_us=ran_us) for lease in leases])


async def judge(platform: Platform, now_us: int | None = None) -> None:
    platform.reclassifier._judge_due_us = 0
    await platform.reclassifier.run_once(platform.clock.now_us() if now_us is None else now_us)


async def test_a_type_whose_p95_is_20_s_is_moved_and_everybody_is_told(
    platform: Platform, tenant: Tenant
) -> None:
    await finish(platform, tenant, RUNS_MIN, 20 * S)
    await judge(platform)
    assert platform.registry.pool_for("work", "short") == MEDIUM
    assert platform.registry.pool_for("work", None) == MEDIUM
    (event,) = await told_events(platform, tenant, "type.reclassified")
    assert event.subject == "work"
    assert "From short to medium" in str(event.data["detail"])
    entry = (await platform.registry.audit(None, AuditFilter(1 << 62, 10)))[0]  # the newest
    assert (entry.actor, entry.action, entry.subject) == ("platform", "job_type_moved", "work")
    assert (entry.before, entry.after) == ('{"pool":"short"}', '{"pool":"medium"}')
    moved = await platform.registry.type_named("work")
    assert moved.measured_pool == MEDIUM
    assert 18_000 <= (moved.measured_p95_ms or 0) <= 22_000


async def test_how_long_jobs_take_at_a_tenants_own_worker_moves_nobodys(
    platform: Platform, tenant: Tenant
) -> None:
    """C13: some reports of long runs were enough to move a type for everybody."""
    await finish(platform, tenant, 3 * RUNS_MIN, 20 * S, own=tenant)
    await judge(platform)
    assert platform.registry.pool_for("work", "short") == SHORT
    await finish(platform, tenant, RUNS_MIN, 20 * S)  # as many at a shared one do
    await judge(platform)
    assert platform.registry.pool_for("work", "short") == MEDIUM


@pytest.mark.usefixtures("quick_overrun")
@pytest.mark.parametrize("is_own", [True, False])
async def test_overruns_at_a_tenants_own_worker_move_nobodys(
    platform: Platform, tenant: Tenant, *, is_own: bool
) -> None:
    await submit(platform, tenant, new())
    hand = Hand(platform, short=1, medium=1)
    hand.tenant = tenant.id if is_own else None
    (lease,) = await hand.take()
    await beating(hand, lambda: lease.moved_to == MEDIUM)
    record = platform.reclassifier._classifier.record_of(lease.job.type, SHORT)
    assert record.violations.bad == (0 if is_own else 1)


async def test_it_does_not_flap(platform: Platform, tenant: Tenant) -> None:
    await finish(platform, tenant, RUNS_MIN, 20 * S)
    await judge(platform)
    for ran_us in (S // 2, 2 * S, S // 2, 2 * S):
        await finish(platform, tenant, 3 * RUNS_MIN, ran_us)
        await judge(platform)
        await judge(platform, platform.clock.now_us() + 3700 * S)
    assert len(await told_events(platform, tenant, "type.reclassified")) == 1
    assert platform.registry.pool_for("work", "short") == MEDIUM


async def test_another_server_hears_of_the_move(platform: Platform, tenant: Tenant) -> None:
    await finish(platform, tenant, RUNS_MIN, 20 * S)
    await judge(platform)
    fresh = Registry(
        platform.database,
        platform.directory,
        platform.run_times,
        on_unsaid=platform.dispatcher.hear_anew,
        on_forgotten=platform.dispatcher.forget_type,
    )
    await fresh.run_once(0)
    assert fresh.pool_for("work", "short") == MEDIUM


async def told(platform: Platform, tenant: Tenant, kind: str) -> bool:
    found = await told_events(platform, tenant, kind)
    return [event.subject for event in found] == ["work"]


async def beating(hand: Hand, holds: Callable[[], bool]) -> None:
    """Wait for a fact as a worker does that is alive and wants no more leases."""

    async def look() -> bool:
        await hand.say(draining=True)
        return holds()

    await until(look)


@pytest.fixture
async def quick_overrun(platform: Platform) -> None:
    """Short jobs should take 20 ms here, and overrun after 50."""
    async with platform.database.background() as connection:
        await connection.execute(
            "UPDATE pools SET fits_seconds = 0.02, overrun_seconds = 0.05 WHERE name = 'short'"
        )
    await platform.registry.run_once(0)


@pytest.mark.usefixtures("quick_overrun")
async def test_an_overrun_job_keeps_its_lease_and_frees_its_slot(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant, new())
    hand = Hand(platform, short=1, medium=1)
    (lease,) = await hand.take()
    await beating(hand, lambda: lease.moved_to == MEDIUM)
    assert (lease.session.in_use[SHORT], lease.session.in_use[MEDIUM]) == (0, 1)
    assert platform.metrics.violations.labels("short")._value.get() == 1
    await until(lambda: told(platform, tenant, "pool.violated"))
    (second,) = await submit(platform, tenant, new())  # its slot is free for another
    news = await hand.say(wait_seconds=5)
    assert news is not None
    (other,) = news.leases
    assert other.job.id == second
    assert await hand.report(hand.done(lease), hand.done(other)) == ({1, 2}, set())
    assert (await stored(platform, job))[0] is State.SUCCEEDED
    record = (await sight(platform, tenant, job)).record
    assert (record.attempts, record.deliveries, record.pool) == (1, 1, SHORT)
    assert sum(lease.session.in_use.values()) == 0


@pytest.mark.usefixtures("quick_overrun")
@pytest.mark.parametrize("medium", [0, 1])
async def test_a_worker_that_ends_nothing_holds_no_more_than_its_slots(
    platform: Platform, tenant: Tenant, medium: int
) -> None:
    await submit(platform, tenant, *[new() for _ in range(10)])
    hand = Hand(platform, short=2, medium=medium)
    count = 2 + medium
    leases = await hand.take(count)
    await beating(hand, lambda: all(lease.moved_to is not None for lease in leases))
    await platform.reclassifier.run_once(platform.clock.now_us())
    news = await hand.say(wait_seconds=0.2)
    assert news is not None
    assert not news.leases
    session = leases[0].session
    assert len(session.leases) == count
    assert (session.in_use[SHORT], session.in_use.get(MEDIUM, 0)) == (2, medium)


@pytest.mark.usefixtures("quick_overrun")
async def test_an_overrun_waits_for_a_free_slot_in_the_slower_pool(
    platform: Platform, tenant: Tenant
) -> None:
    await submit(platform, tenant, new(pool=MEDIUM), new())
    hand = Hand(platform, short=1, medium=1)
    blocking, lease = sorted(await hand.take(2), key=lambda one: -one.job.pool)
    await beating(hand, lambda: lease.moved_to == SHORT)
    await hand.report(hand.done(blocking))
    await beating(hand, lambda: lease.moved_to == MEDIUM)
    assert lease.session.in_use == {SHORT: 0, MEDIUM: 1}
    assert platform.metrics.violations.labels("short")._value.get() == 1, "counted once"
