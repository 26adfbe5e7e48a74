"""Dead letters on a real server: found, grouped, replayed, discarded; none lost, none doubled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace
from tests.services.platform_room import (
    Hand,
    add_tenant,
    kill,
    new,
    owner_on,
    owns_all,
    platform_on,
    sight,
    stored,
    submit,
    until,
)

from fairway.core.bulk import BulkFilter
from fairway.core.errors import Conflict, NotFound
from fairway.core.failure.dead_letter import DeadFilter
from fairway.core.ids import LOWEST_JOB_ID, JobId, PoolId, unix_ms_of
from fairway.core.job import due_ms_of
from fairway.core.lifecycle import State
from fairway.core.run.outcome import FailureClass, Outcome, OutcomeKind
from fairway.core.tenant import Tenant
from fairway.services.jobs.bulk_actions import Pace
from fairway.services.jobs.far_runs import no_peers
from fairway.services.platform import Platform

EVERYTHING = DeadFilter("ffffffff-ffff-ffff-ffff-ffffffffffff", LOWEST_JOB_ID)


@pytest.fixture
async def platform(database_url: str) -> AsyncIterator[Platform]:
    async with owner_on(database_url) as platform:
        yield platform


@pytest.fixture
async def tenant(platform: Platform) -> Tenant:
    return await add_tenant(platform)


def fatal(message: str = "no") -> Outcome:
    error = json.dumps({"type": "ValueError", "message": message, "stack": "  at f (x:1)"})
    return Outcome(OutcomeKind.FAILED, 10, failure=FailureClass.PERMANENT, error=error.encode())


async def died(
    platform: Platform, tenant: Tenant, count: int, kind: str = "work", message: str = "no {n}"
) -> list[JobId]:
    jobs = await submit(platform, tenant, *[new(kind)] * count)
    hand = Hand(platform, types=(kind,), short=count)
    leases = await hand.take(count)
    await hand.report(
        *[hand.done(lease, fatal(message.format(n=n))) for n, lease in enumerate(leases)]
    )
    await hand.say(goodbye=True)
    return jobs


async def states(platform: Platform, jobs: list[JobId]) -> dict[State, int]:
    async with platform.database.background() as connection:
        rows = await connection.fetch(
            "SELECT state, count(*) FROM jobs WHERE id = ANY($1::uuid[]) GROUP BY state", jobs
        )
    return {State(row["state"]): row["count"] for row in rows}


# -- look ----------------------------------------------------------------------------------------


async def test_they_are_listed_grouped_and_counted(platform: Platform, tenant: Tenant) -> None:
    stranger = await add_tenant(platform, "stranger")
    await died(platform, stranger, 1)
    first = await died(platform, tenant, 5, "mail", "no user {n}")
    second = await died(platform, tenant, 3, "mail", "quota exceeded for user {n}")
    third = await died(platform, tenant, 2, "pay", "no user {n}")
    page = await platform.dead_letters.page(tenant.id, EVERYTHING, 100)
    assert [record.id for record in page] == sorted(first + second + third, reverse=True)
    groups = await platform.dead_letters.groups(tenant.id)
    assert [cause.matched for cause in groups.causes] == [5, 3, 2]
    types = platform.directory.type_ids
    assert groups.by_type == {types["mail"]: 8, types["pay"]: 2}
    largest = groups.causes[0]
    only = EVERYTHING._replace(fingerprint=largest.fingerprint)
    page = await platform.dead_letters.page(tenant.id, only, 100)
    assert {record.id for record in page} == set(first)
    count = platform.bulk_actions.count
    which = bulk(only)
    assert await count(tenant.id, "replay", which) == (5, True)
    assert await count(tenant.id, "discard", which._replace(pool=PoolId(2))) == (0, True)


async def test_a_job_tells_every_run(platform: Platform, tenant: Tenant) -> None:
    (job,) = await submit(platform, tenant)
    hand = Hand(platform)
    hand.build = "r42"
    (lease,) = await hand.take()
    at_once = replace(fatal("first"), failure=FailureClass.APP_ERROR, delay_ms=1)
    await hand.report(hand.done(lease, at_once))
    (lease,) = await hand.take()
    await hand.report(hand.done(lease, Outcome(OutcomeKind.RETURNED, 7)))
    (lease,) = await hand.take()
    await hand.say(goodbye=True)  # its process ends: lost
    hand = Hand(platform)
    (lease,) = await hand.take()
    await hand.report(hand.done(lease, fatal("last")))
    record = (await sight(platform, tenant, job)).record
    assert (record.state, record.attempts, record.deliveries) == (State.DEAD, 2, 4)
    assert record.failures == [1, 0, 0, 0, 1]
    notes = [json.loads(note) for note in record.history or ()]
    assert [(n["delivery"], n["outcome"], n["reason"]) for n in notes] == [
        (1, "failed", "retrying"),
        (2, "returned", "returned"),
        (3, "lost", "worker_crash"),
        (4, "failed", "permanent"),
    ]
    assert notes[0]["error"]["message"] == "first"
    assert (notes[0]["worker"], notes[0]["build"]) == ("hand", "r42")
    assert notes[3]["error"]["failure"] == "permanent"


# -- one -----------------------------------------------------------------------------------------


async def test_one_is_replayed_with_fresh_counters(platform: Platform, tenant: Tenant) -> None:
    (job,) = await died(platform, tenant, 1)
    await platform.dead_letters.replay_one(tenant.id, job, b'{"edited":true}')
    hand = Hand(platform)
    (lease,) = await hand.take()
    assert (lease.job.id, lease.job.payload) == (job, b'{"edited":true}')
    assert (lease.job.attempts, lease.job.deliveries, lease.job.failures) == (0, 0, None)
    assert due_ms_of(lease.job) > unix_ms_of(job), "it waits since its replay, not since it was new"
    await hand.report(hand.done(lease))
    record = (await sight(platform, tenant, job)).record
    assert (record.state, record.fingerprint, record.attempts) == (State.SUCCEEDED, None, 1)
    assert [json.loads(note)["outcome"] for note in record.history or ()] == ["failed", "replayed"]
    with pytest.raises(NotFound):
        await platform.dead_letters.replay_one(tenant.id, job, None)


async def test_a_discarded_one_stays_dead_and_off_the_list(
    platform: Platform, tenant: Tenant
) -> None:
    (job,) = await died(platform, tenant, 1)
    other = await add_tenant(platform, "other")
    with pytest.raises(NotFound):
        await platform.dead_letters.discard_one(other.id, job)
    await platform.dead_letters.discard_one(tenant.id, job)
    assert await platform.dead_letters.page(tenant.id, EVERYTHING, 10) == []
    assert (await stored(platform, job))[0] is State.DEAD
    with pytest.raises(NotFound):
        await platform.dead_letters.replay_one(tenant.id, job, None)


def bulk(wanted: DeadFilter) -> BulkFilter:
    same: dict[str, Any] = {
        "type": wanted.type,
        "pool": wanted.pool,
        "fingerprint": wanted.fingerprint,
    }
    return BulkFilter(wanted.before, wanted.since, **same)


# -- many ----------------------------------------------------------------------------------------


async def ended(platform: Platform, tenant: Tenant, action: str) -> bool:
    return (await platform.bulk_actions.read(tenant.id, action)).state != "running"


async def test_many_are_replayed_once_each_and_a_second_death_stays(
    platform: Platform, tenant: Tenant
) -> None:
    jobs = await died(platform, tenant, 40)
    others = await died(platform, tenant, 4, "other")
    only = EVERYTHING._replace(type=platform.directory.type_ids["work"])
    action = await platform.bulk_actions.begin(tenant.id, "replay", bulk(only), Pace(10_000))
    assert (action.matched, action.state) == (40, "running")
    hand = Hand(platform, short=40)
    leases = await hand.take(40)
    await hand.report(*[hand.done(lease, fatal("again")) for lease in leases])
    await until(lambda: ended(platform, tenant, action.id))
    action = await platform.bulk_actions.read(tenant.id, action.id)
    assert (action.state, action.done) == ("done", 40)
    assert await states(platform, jobs + others) == {State.DEAD: 44}
    for record in await platform.dead_letters.page(tenant.id, only, 100):
        assert (record.attempts, record.deliveries) == (1, 1), "replayed once"


async def test_a_replay_keeps_its_rate_and_can_be_aborted(
    platform: Platform, tenant: Tenant
) -> None:
    jobs = await died(platform, tenant, 60)
    began = asyncio.get_running_loop().time()
    action = await platform.bulk_actions.begin(tenant.id, "replay", bulk(EVERYTHING), Pace(20))

    async def has_moved() -> bool:
        return (await platform.bulk_actions.read(tenant.id, action.id)).done >= 12

    await until(has_moved)
    aborted = await platform.bulk_actions.abort(tenant.id, action.id)
    took = asyncio.get_running_loop().time() - began
    assert aborted.state == "aborted"
    assert aborted.done <= 20 * took + 5, "no faster than asked, a batch aside"
    assert await states(platform, jobs) == {
        State.QUEUED: aborted.done,
        State.DEAD: 60 - aborted.done,
    }
    with pytest.raises(Conflict):
        await platform.bulk_actions.abort(tenant.id, action.id)


async def test_a_full_queue_is_waited_for(platform: Platform) -> None:
    small = await add_tenant(platform, "small", depth_limit=10)
    for _ in range(3):
        await died(platform, small, 8)
    action = await platform.bulk_actions.begin(small.id, "replay", bulk(EVERYTHING), Pace(20))

    async def has_moved() -> bool:
        return (await platform.bulk_actions.read(small.id, action.id)).done >= 4

    await until(has_moved)
    await asyncio.sleep(0.5)
    assert (await platform.bulk_actions.read(small.id, action.id)).done <= 10
    await platform.bulk_actions.abort(small.id, action.id)


async def test_many_are_discarded(platform: Platform, tenant: Tenant) -> None:
    jobs = await died(platform, tenant, 30)
    action = await platform.bulk_actions.begin(tenant.id, "discard", bulk(EVERYTHING), Pace(10_000))
    await until(lambda: ended(platform, tenant, action.id))
    assert await platform.dead_letters.page(tenant.id, EVERYTHING, 10) == []
    assert await states(platform, jobs) == {State.DEAD: 30}


async def test_a_server_that_dies_in_the_middle_loses_and_doubles_nothing(
    database_url: str,
) -> None:
    async with platform_on(database_url) as second:
        first = await Platform.prepare(database_url, second.settings, second.clock, no_peers)
        await until(lambda: owns_all(second))
        tenant = await add_tenant(second)
        jobs = await died(second, tenant, 100)
        action = await second.bulk_actions.begin(tenant.id, "replay", bulk(EVERYTHING), Pace(100))

        async def has_moved() -> bool:
            return (await second.bulk_actions.read(tenant.id, action.id)).done >= 20

        await until(has_moved)
        await kill(second)
        await first.start()
        await until(lambda: owns_all(first), 20)
        hand = Hand(first, short=100)
        leases = await hand.take(100, seconds=20)
        assert sorted(lease.job.id for lease in leases) == sorted(jobs), "each once"
        await until(lambda: ended(first, tenant, action.id))
        assert (await first.bulk_actions.read(tenant.id, action.id)).done == 100
        await hand.report(*[hand.done(lease) for lease in leases])
        assert await states(first, jobs) == {State.SUCCEEDED: 100}
        await first.stop()
