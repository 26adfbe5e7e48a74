"""A tenant's own worker runs its types for that tenant: to others it is as if it were not there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.services.platform_room import (
    QUICK,
    SHORT,
    Hand,
    add_tenant,
    new,
    owner_on,
    submit,
    until,
)

from fairway.core.ids import JobId
from fairway.core.tenant import Tenant
from fairway.runtime.telemetry import value_of
from fairway.services.platform import Platform


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    """Silent workers are there for longer than a test takes."""
    patient = replace(QUICK, lease_seconds={"short": 60, "medium": 60, "long": 60})
    async with owner_on(database_url, patient) as platform:
        yield platform


async def reason(platform: Platform, tenant: Tenant, job: JobId) -> str:
    now_us = platform.clock.now_us()
    return (await platform.explainer.explain(tenant.id, job, now_us)).reason


async def greet(hand: Hand, tenant: Tenant | None = None) -> Hand:
    hand.tenant = tenant.id if tenant else None
    assert await hand.say(hello=True) is not None
    return hand


async def test_it_makes_nobody_elses_jobs_runnable(platform: Platform, tenant: Tenant) -> None:
    other, ready = await add_tenant(platform, "other"), platform.dispatcher.backlog.counts.ready
    await greet(Hand(platform, ["work"]))
    await greet(Hand(platform, ["special"], short=0), tenant)
    await submit(platform, tenant, *[new("special")] * 3)
    (job, *_) = await submit(platform, other, *[new("special")] * 3)
    assert (ready(SHORT, tenant.id), ready(SHORT, other.id)) == (3, 0)
    assert await reason(platform, other, job) == "no_worker"
    shared = Hand(platform, ["special"], short=6)
    leases = await shared.take(6)
    assert sorted(one.job.tenant for one in leases) == [tenant.id] * 3 + [other.id] * 3


async def test_what_it_alone_runs_runs_there_and_is_explained_so(
    platform: Platform, tenant: Tenant
) -> None:
    other = await add_tenant(platform, "other")
    await greet(Hand(platform, ["work"]))
    own = await greet(Hand(platform, ["special"], short=1), tenant)
    mine = await submit(platform, tenant, *[new("special")] * 2)
    (theirs,) = await submit(platform, other, new("special"))
    (lease,) = await own.take()
    assert lease.job.id == mine[0]
    assert await reason(platform, tenant, mine[1]) != "no_worker"
    assert await reason(platform, other, theirs) == "no_worker"
    await own.say(goodbye=True)
    assert await reason(platform, tenant, mine[1]) == "no_worker"
    await until(lambda: all_blocked(platform, tenant))


def all_blocked(platform: Platform, tenant: Tenant) -> bool:
    streams = platform.dispatcher.backlog.counts.streams_of(tenant.id, [SHORT])
    return all(stream.blocked for stream in streams)


async def test_runs_that_it_loses_raise_no_alarm_of_the_platforms(
    platform: Platform, tenant: Tenant
) -> None:
    own = await greet(Hand(platform, ["special"], short=1), tenant)
    await submit(platform, tenant, new("special"))
    await own.take()
    await own.say(goodbye=True)
    metrics = platform.metrics
    assert (value_of(metrics.lost), value_of(metrics.lost_by_own)) == (0, 1)
