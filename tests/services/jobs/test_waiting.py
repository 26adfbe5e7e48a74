"""Waiting for a job: over as soon as the job is, wherever its owner is, and with its time."""

from __future__ import annotations

import asyncio
import time

from tests.services.jobs.test_lookup import wait
from tests.services.platform_room import (
    Hand,
    add_tenant,
    platform_on,
    submit,
)

from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.services.jobs.waiting import FAR_POLL_SECONDS, JobWaits
from fairway.services.platform import Platform


async def test_a_wait_ends_as_soon_as_the_job_does(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    waiting = wait(platform, tenant, job, 5)
    await hand.report(hand.done(lease, result=b"42"))
    seen = (await asyncio.wait_for(waiting, 1)).record
    assert (seen.state, seen.result) == (State.SUCCEEDED, b"42")
    assert platform.watchers.watched() == []


async def test_a_wait_for_a_final_job_is_no_wait(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    (lease,) = await hand.take()
    await hand.report(hand.done(lease))
    assert (await asyncio.wait_for(wait(platform, tenant, job, 60), 30)).record.state == 3


async def test_a_wait_ends_with_its_time(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    began = time.monotonic()
    seen = await wait(platform, tenant, job, 0.15)
    assert seen.record.state == State.QUEUED
    assert 0.1 < time.monotonic() - began < 20


async def test_a_server_that_does_not_own_the_job_hears_of_its_end(
    database_url: str, platform: Platform
) -> None:
    tenant = await add_tenant(platform)
    (job,) = await submit(platform, tenant)
    async with platform_on(database_url) as other:
        waiting = wait(other, tenant, job, 60)
        hand = Hand(platform)
        (lease,) = await hand.take()
        await hand.report(hand.done(lease))
        seen = await asyncio.wait_for(waiting, 30)
        assert seen.record.state == State.SUCCEEDED


async def test_what_ended_before_a_shard_was_opened_here_is_told_after_it(
    platform: Platform, tenant: Tenant
) -> None:
    """The owner before told its own waiters; until the next look nobody told ours."""
    (job,) = await submit(platform, tenant)
    waiting = wait(platform, tenant, job, 60)
    while not platform.watchers.watched():  # noqa: ASYNC110  # another task's state
        await asyncio.sleep(0)
    async with platform.database.background() as connection:
        ended = "UPDATE jobs SET state = 3, finished_at = now() WHERE id = $1::uuid"
        await connection.execute(ended, job)
    lookup, watchers = platform.job_lookup, platform.watchers
    opened = JobWaits(lookup, watchers, platform.dispatcher, platform.clock)
    assert await opened.run_once(0) == FAR_POLL_SECONDS
    assert (await asyncio.wait_for(waiting, 10)).record.state == State.SUCCEEDED
    assert await opened.run_once(0) > FAR_POLL_SECONDS, "then the owner itself tells"
