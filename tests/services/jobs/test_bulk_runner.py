"""Acts on many jobs: of any timing; and nobody's action waits for another's that fails."""

from __future__ import annotations

import asyncpg
import pytest
from tests.services.platform_room import (
    SHORT,
    Hand,
    add_tenant,
    new,
    sight,
    stored,
    submit,
    until,
)
from tests.services.refusing import refusing

from fairway.core.bulk import HELD_UP_TRIES_MAX, BulkAction, BulkFilter
from fairway.core.ids import LOWEST_JOB_ID, JobId, PoolId, TenantId
from fairway.core.job import due_ms_of
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.scheduling.timing import OnLate, Wish
from fairway.core.tenant import Tenant
from fairway.services.jobs.bulk_actions import Pace
from fairway.services.jobs.bulk_runner import REST_SECONDS, BulkRunner
from fairway.services.jobs.control import Cancelled, Ending
from fairway.services.platform import Platform
from fairway.store import history

EVERYTHING = BulkFilter("ffffffff-ffff-ffff-ffff-ffffffffffff", LOWEST_JOB_ID)
FATAL = Outcome(OutcomeKind.FAILED, 10, failure=FailureClass.PERMANENT)
HOUR_MS = 3_600_000


async def died(platform: Platform, tenant: Tenant, *wishes: Wish | None) -> list[JobId]:
    """Jobs that are dead letters now, one a wish."""
    jobs = await submit(platform, tenant, *[new(wish=wish) for wish in wishes])
    hand = Hand(platform, short=len(wishes))
    leases = await hand.take(len(wishes))
    await hand.report(*[hand.done(lease, FATAL) for lease in leases])
    await hand.say(goodbye=True)
    return jobs


def every_wish(now_ms: int) -> list[Wish | None]:
    late = [Wish(not_after_ms=now_ms + HOUR_MS, on_late=rule) for rule in OnLate]
    return [None, Wish(due_ms=now_ms - 1000), Wish(delay_ms=1), *late]


async def replay_all(platform: Platform, tenant: Tenant) -> BulkAction:
    return await platform.bulk_actions.begin(tenant.id, "replay", EVERYTHING, Pace(1000))


async def test_jobs_of_every_timing_are_replayed(platform: Platform, tenant: Tenant) -> None:
    """One by one, then all at once: due now, and no last moment any more."""
    wishes = every_wish(platform.store_clock.unix_ms())
    jobs = await died(platform, tenant, *wishes)
    for job in jobs:
        await platform.dead_letters.replay_one(tenant.id, job, None)
    hand = Hand(platform, short=len(jobs))
    leases = await hand.take(len(jobs))
    assert {lease.job.id for lease in leases} == set(jobs)
    now_ms = platform.store_clock.unix_ms()
    assert all(due_ms_of(lease.job) <= now_ms for lease in leases)
    assert {tuple((lease.job.timing or [])[1:]) for lease in leases} == {(None, None)}
    await hand.report(*[hand.done(lease, FATAL) for lease in leases])
    await hand.say(goodbye=True)
    await died(platform, tenant, *wishes)
    action = await replay_all(platform, tenant)
    await until(lambda: has_ended(platform, tenant, action.id))
    action = await platform.bulk_actions.read(tenant.id, action.id)
    assert (action.state, action.done, action.error) == ("done", 2 * len(jobs), None)


async def has_ended(platform: Platform, tenant: Tenant, action: str) -> bool:
    return (await platform.bulk_actions.read(tenant.id, action)).state != "running"


async def test_an_action_that_the_store_refuses_holds_up_nobody(
    platform: Platform, tenant: Tenant
) -> None:
    (bad,) = await died(platform, tenant, None)
    other = await add_tenant(platform, "other")
    (good,) = await died(platform, other, None)
    async with refusing(platform, f"NEW.tenant = {tenant.id} AND NEW.state = 1"):
        refused = await replay_all(platform, tenant)
        fine = await replay_all(platform, other)
        await until(lambda: has_ended(platform, other, fine.id))
        await until(lambda: has_ended(platform, tenant, refused.id))
    fine = await platform.bulk_actions.read(other.id, fine.id)
    refused = await platform.bulk_actions.read(tenant.id, refused.id)
    assert (fine.state, fine.done, fine.error) == ("done", 1, None)
    assert (refused.state, refused.done, refused.error) == ("failed", 0, "not this row (22003)")
    assert (await sight(platform, tenant, bad)).record.state == State.DEAD
    assert (await sight(platform, other, good)).record.state == State.QUEUED


async def test_many_actions_that_wait_for_room_keep_out_nobody(platform: Platform) -> None:
    """Tenants with full queues, ten actions each: more than one round looks at."""
    full = [await add_tenant(platform, f"full-{n}", depth_limit=1) for n in range(6)]
    for one in full:
        await died(platform, one, None)
        await submit(platform, one, new("nobody.runs.this"))
        for _ in range(10):
            await replay_all(platform, one)
    other = await add_tenant(platform, "other")
    await died(platform, other, None)
    action = await replay_all(platform, other)
    await until(lambda: has_ended(platform, other, action.id))
    assert (await platform.bulk_actions.read(other.id, action.id)).done == 1


async def test_an_action_that_waits_for_room_is_not_looked_at_all_the_time(
    platform: Platform, tenant: Tenant
) -> None:
    await died(platform, tenant, None)
    await platform.loops["bulk actions"].stop()
    await platform.directory.change_tenant(tenant.name, {"depth_limit": 0})
    await replay_all(platform, tenant)
    now_us = platform.clock.now_us()
    replayer = BulkRunner(
        platform.database, platform.dispatcher, platform.directory, platform.dead_letters,
        platform.control, platform.watchers,
    )  # fmt: skip
    for _ in range(2):
        assert await replayer.run_once(now_us) >= REST_SECONDS
    await platform.directory.change_tenant(tenant.name, {"depth_limit": 1000})
    await replayer.run_once(now_us + round(REST_SECONDS * 1e6))
    assert platform.dispatcher.backlog.counts.depth(tenant.id, [PoolId(1)]) >= 1


async def test_one_refused_job_keeps_none_of_the_others(platform: Platform, tenant: Tenant) -> None:
    """The batch goes job by job: what the store refuses is counted, and the rest is done."""
    jobs = await died(platform, tenant, *[None] * 6)
    async with refusing(platform, f"NEW.id = '{jobs[2]}' AND NEW.state = 1"):
        action = await replay_all(platform, tenant)
        await until(lambda: has_ended(platform, tenant, action.id))
    action = await platform.bulk_actions.read(tenant.id, action.id)
    assert (action.state, action.done, action.failed) == ("done", 5, 1)
    assert action.error == "not this row (22003)"
    assert (await sight(platform, tenant, jobs[2])).record.state == State.DEAD


async def test_a_cancel_goes_on_at_the_next_owner(platform: Platform, tenant: Tenant) -> None:
    """It stands in the store: another server takes it up where this one left it."""
    await platform.loops["bulk actions"].stop()
    jobs = await submit(platform, tenant, *[new("nobody.runs.this") for _ in range(30)])
    action = await platform.bulk_actions.begin(tenant.id, "cancel", EVERYTHING, Pace(50))
    parts = (
        platform.database, platform.dispatcher, platform.directory, platform.dead_letters,
        platform.control, platform.watchers,
    )  # fmt: skip
    now_us = platform.clock.now_us()
    await BulkRunner(*parts).run_once(now_us)
    begun = await platform.bulk_actions.read(tenant.id, action.id)
    assert (begun.state, begun.done) == ("running", 10)
    other = BulkRunner(*parts)
    for second in range(1, 5):
        await other.run_once(now_us + second * 1_000_000)
    ended = await platform.bulk_actions.read(tenant.id, action.id)
    assert (ended.state, ended.done, ended.skipped) == ("done", 30, 0)
    for job in jobs:
        assert (await sight(platform, tenant, job)).record.state == State.CANCELLED
    assert platform.dispatcher.backlog.counts.depth(tenant.id, [PoolId(1)]) == 0


async def test_what_is_cancelled_on_disk_does_not_start_when_nobody_heard_of_it(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply to the commit is lost: what became of the batch is read again."""
    await platform.loops["bulk actions"].stop()
    await submit(platform, tenant, *[new()] * 3)
    await platform.bulk_actions.begin(tenant.id, "cancel", EVERYTHING, Pace(1000))

    async def lost(whose: TenantId, ending: Ending) -> Cancelled:
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle")

    runner = BulkRunner(
        platform.database, platform.dispatcher, platform.directory, platform.dead_letters,
        platform.control, platform.watchers,
    )  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(platform.control, "settle", lost)
        await runner.run_once(platform.clock.now_us())
    (later,) = await submit(platform, tenant)
    taken = await Hand(platform).take()
    assert [lease.job.id for lease in taken] == [later], "before anybody looked"
    await runner.run_once(platform.clock.now_us())
    (last,) = await submit(platform, tenant)
    assert [lease.job.id for lease in await Hand(platform).take()] == [last]
    assert platform.dispatcher.backlog.counts.depth(tenant.id, [SHORT]) == 0


# -- turns, and what gets nowhere ----------------------------------------------------------------


def runner_of(platform: Platform) -> BulkRunner:
    return BulkRunner(
        platform.database, platform.dispatcher, platform.directory, platform.dead_letters,
        platform.control, platform.watchers,
    )  # fmt: skip


async def test_tenants_have_turns_one_step_each(platform: Platform, tenant: Tenant) -> None:
    await platform.loops["bulk actions"].stop()
    other = await add_tenant(platform, "other")
    for one in (tenant, other):
        await submit(platform, one, new("nobody.runs.this"))
    mine = [
        await platform.bulk_actions.begin(tenant.id, "cancel", EVERYTHING, Pace(50))
        for _ in range(3)
    ]
    theirs = await platform.bulk_actions.begin(other.id, "cancel", EVERYTHING, Pace(50))
    await runner_of(platform).run_once(platform.clock.now_us())
    assert await has_ended(platform, other, theirs.id)
    ended = [await has_ended(platform, tenant, one.id) for one in mine]
    assert sorted(ended) == [False, False, True]


async def test_a_step_walks_so_far_and_the_next_goes_on_from_there(
    platform: Platform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not it found any: however many jobs have ended, a step is short."""
    monkeypatch.setattr(history, "LOOKED_MAX", 2)
    await platform.loops["bulk actions"].stop()
    jobs = await submit(platform, tenant, *[new("nobody.runs.this") for _ in range(7)])
    for job in sorted(jobs)[2:]:
        await platform.control.cancel(tenant.id, job)
    action = await platform.bulk_actions.begin(tenant.id, "cancel", EVERYTHING, Pace(50))
    runner, now_us, steps = runner_of(platform), platform.clock.now_us(), 0
    while not await has_ended(platform, tenant, action.id):
        await runner.run_once(now_us + steps * 1_000_000)
        steps += 1
    action = await platform.bulk_actions.read(tenant.id, action.id)
    assert (action.state, action.done, action.skipped, steps) == ("done", 2, 0, 4)


async def test_what_gets_nowhere_for_long_has_failed_and_says_why(
    platform: Platform, tenant: Tenant
) -> None:
    """The store cuts its statement off each time: no row is at fault, and no end in sight."""
    await platform.loops["bulk actions"].stop()
    await submit(platform, tenant, new("nobody.runs.this"))
    action = await platform.bulk_actions.begin(tenant.id, "cancel", EVERYTHING, Pace(50))
    runner, now_us = runner_of(platform), platform.clock.now_us()
    async with refusing(platform, f"NEW.tenant = {tenant.id}", code="57014"):
        for minute in range(HELD_UP_TRIES_MAX - 1):
            await runner.run_once(now_us + minute * 61_000_000)
        assert not await has_ended(platform, tenant, action.id)
        await runner.run_once(now_us + HELD_UP_TRIES_MAX * 61_000_000)
    action = await platform.bulk_actions.read(tenant.id, action.id)
    assert (action.state, action.done) == ("failed", 0)
    assert action.error == "It got no further in 20 tries: not this row (57014)"


async def test_a_replay_of_a_tenant_that_is_forgotten_has_failed(
    platform: Platform, tenant: Tenant
) -> None:
    """While it is only deleted it may be restored: then it waits, and brings nothing back."""
    for name in ("bulk actions", "deleted tenants"):
        await platform.loops[name].stop()
    (job,) = await died(platform, tenant, None)
    action = await replay_all(platform, tenant)
    await platform.tenant_states.delete(tenant.name, may_suspend=True)
    runner, now_us = runner_of(platform), platform.clock.now_us()
    await runner.run_once(now_us)
    assert not await has_ended(platform, tenant, action.id)
    assert (await stored(platform, job))[0] is State.DEAD
    async with platform.database.background() as connection:
        await connection.execute("DELETE FROM tenants WHERE id = $1", tenant.id)
    await runner.run_once(now_us + 2_000_000)
    action = await platform.bulk_actions.read(tenant.id, action.id)
    assert (action.state, action.done) == ("failed", 0)
    assert "Its tenant was deleted" in (action.error or "")
