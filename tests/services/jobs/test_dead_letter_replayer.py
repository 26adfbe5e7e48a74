"""Replays of dead letters: of any timing; and nobody's action waits for another's that fails."""

from __future__ import annotations

from tests.services.platform_room import Hand, add_tenant, new, sight, submit, until
from tests.services.refusing import refusing

from fairway.core.failure.dead_letter import Action, DeadFilter
from fairway.core.ids import LOWEST_JOB_ID, JobId, PoolId
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.scheduling.timing import OnLate, Wish
from fairway.core.tenant import Tenant
from fairway.services.jobs.dead_letter_replayer import REST_SECONDS, Replayer
from fairway.services.platform import Platform

EVERYTHING = DeadFilter("ffffffff-ffff-ffff-ffff-ffffffffffff", LOWEST_JOB_ID)
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


async def replay_all(platform: Platform, tenant: Tenant) -> Action:
    return await platform.dead_letters.begin(
        tenant.id, "replay", EVERYTHING, payload=None, per_second=1000
    )


async def test_jobs_of_every_timing_are_replayed(platform: Platform, tenant: Tenant) -> None:
    """One by one, then all at once: due now, and no last moment any more."""
    wishes = every_wish(platform.store_clock.unix_ms())
    jobs = await died(platform, tenant, *wishes)
    for job in jobs:
        await platform.dead_letters.replay_one(tenant.id, job, None)
    hand = Hand(platform, short=len(jobs))
    leases = await hand.take(len(jobs))
    assert {lease.job.id for lease in leases} == set(jobs)
    assert {lease.job.timing is None for lease in leases} == {True}
    await hand.report(*[hand.done(lease, FATAL) for lease in leases])
    await hand.say(goodbye=True)
    await died(platform, tenant, *wishes)
    action = await replay_all(platform, tenant)
    await until(lambda: has_ended(platform, tenant, action.id))
    action = await platform.dead_letters.action(tenant.id, action.id)
    assert (action.state, action.done, action.error) == ("done", 2 * len(jobs), None)


async def has_ended(platform: Platform, tenant: Tenant, action: str) -> bool:
    return (await platform.dead_letters.action(tenant.id, action)).state != "running"


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
    fine = await platform.dead_letters.action(other.id, fine.id)
    refused = await platform.dead_letters.action(tenant.id, refused.id)
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
    assert (await platform.dead_letters.action(other.id, action.id)).done == 1


async def test_an_action_that_waits_for_room_is_not_looked_at_all_the_time(
    platform: Platform, tenant: Tenant
) -> None:
    await died(platform, tenant, None)
    await platform.loops["replayer"].stop()
    await platform.directory.change_tenant(tenant.name, {"depth_limit": 0})
    await replay_all(platform, tenant)
    now_us = platform.clock.now_us()
    replayer = Replayer(
        platform.database, platform.dispatcher, platform.directory, platform.dead_letters,
        platform.watchers,
    )  # fmt: skip
    for _ in range(2):
        assert await replayer.run_once(now_us) >= REST_SECONDS
    await platform.directory.change_tenant(tenant.name, {"depth_limit": 1000})
    await replayer.run_once(now_us + round(REST_SECONDS * 1e6))
    assert platform.dispatcher.backlog.counts.depth(tenant.id, [PoolId(1)]) >= 1
