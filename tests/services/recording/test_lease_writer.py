"""Leases on disk: durable ones before their worker hears, lazy ones when they still run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests.services.platform_room import (
    LONG,
    MEDIUM,
    Hand,
    new,
    owner_on,
    sight,
    stored,
    submit,
    until,
)
from tests.services.recording.test_refused_outcomes import PATIENT, is_dead
from tests.services.refusing import refusing

from fairway.core.lifecycle import State
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.recording import row_writer


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    async with owner_on(database_url, PATIENT) as platform:
        yield platform


@pytest.mark.parametrize("pool", [MEDIUM, LONG])
async def test_durable_leases_are_on_disk_before_the_worker_hears(
    platform: Platform, tenant: Tenant, pool: int
) -> None:
    (job,) = await submit(platform, tenant, new(pool=pool))
    hand = Hand(platform, medium=1, long=1)
    (lease,) = await hand.take()
    async with platform.database.background() as connection:
        row = await connection.fetchrow(
            "SELECT state, epoch, replace(token::text, '-', '') FROM jobs WHERE id = $1", job
        )
    assert tuple(row) == (State.RUNNING, lease.epoch, lease.token)


async def test_a_lazy_lease_is_written_when_the_job_still_runs(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    (lease,) = await Hand(platform).take()
    await until(lambda: lease.written)
    assert await stored(platform, job) == (State.RUNNING, lease.epoch)


async def test_a_run_began_when_it_was_granted_whenever_that_is_written(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await submit(platform, tenant)
    (lease,) = await Hand(platform).take()
    seen = [await sight(platform, tenant, job)]
    await until(lambda: lease.written)
    seen.append(await sight(platform, tenant, job))
    granted = platform.store_clock.at_us(lease.granted_us)
    for one in seen:
        assert one.record.state == State.RUNNING
        assert one.record.started_at is not None
        # the two clocks are compared anew with every renewal of the term
        assert abs(one.record.started_at - granted) < timedelta(milliseconds=20)


async def test_a_lease_that_the_store_refuses_ends_its_job(
    platform: Platform, tenant: Tenant
) -> None:
    bad, good = await submit(platform, tenant, new(pool=MEDIUM), new(pool=MEDIUM))
    async with refusing(platform, f"NEW.id = '{bad}' AND NEW.state = 2"):
        hand = Hand(platform, medium=2)
        (lease,) = await hand.take()
        assert lease.job.id == good
        await until(lambda: is_dead(platform, bad))
        assert bad not in platform.dispatcher.leases


async def test_a_store_that_takes_no_lease_at_all_costs_no_job(
    platform: Platform, tenant: Tenant
) -> None:
    """An index that is damaged, say: they wait until it is mended."""
    count = 2 * row_writer.WIDESPREAD
    jobs = await submit(platform, tenant, *[new(pool=MEDIUM) for _ in range(count)])
    hand = Hand(platform, medium=count)
    async with refusing(platform, "NEW.state = 2", "XX002"):
        await hand.say(hello=True)
        news = await hand.say(wait_seconds=2)
        assert news is not None
        assert not news.leases
        for job in jobs:
            assert (await stored(platform, job))[0] is State.QUEUED
    assert {lease.job.id for lease in await hand.take(count)} == set(jobs)


async def test_a_run_whose_lease_is_refused_later_is_stopped(
    platform: Platform, tenant: Tenant
) -> None:
    """The short pool writes its leases while the jobs run."""
    async with refusing(platform, "NEW.state = 2"):
        (job,) = await submit(platform, tenant)
        hand = Hand(platform, short=1)
        (lease,) = await hand.take()
        revoked: list[str] = []
        async with asyncio.timeout(30):
            while not revoked:
                news = await hand.say(wait_seconds=0.2)
                assert news is not None
                revoked += news.revoked
        assert revoked == [job]
        await until(lambda: is_dead(platform, job))
    assert await hand.report(hand.done(lease)) == (set(), {1})
