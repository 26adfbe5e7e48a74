"""Unfinished jobs leave for another region and are taken in there: none is lost on the way."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from tests.services.platform_room import new, stored, submit
from tests.services.regions.test_hand_over import Homes, Peers, handing, held
from tests.services.scheduling.test_schedules import put

from fairway.core.errors import FairwayError, Unavailable
from fairway.core.ids import FIRST_SHARD, JobId
from fairway.core.lifecycle import State
from fairway.core.regions.held import HeldCall, HeldKind, SentTo
from fairway.core.regions.homes import NEVER_MOVED, DirectoryTerm, Meant
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.regions.moved_rows import MovedLot, MovedRow, MovedRows
from fairway.store.regions import held_jobs as store
from fairway.store.regions import regions

MEANT = Meant("", None)


def sent(tenant: Tenant, region: str = "us") -> SentTo:
    return SentTo(FIRST_SHARD, tenant.id, region, NEVER_MOVED)


async def taking_in(platform: Platform) -> MovedRows:
    """Its store is a region, where all tenants are at home that never moved."""
    async with platform.database.background() as connection:
        await regions.found_region(connection, "us", "us")
    return MovedRows(
        platform.database, platform.directory, platform.dispatcher, platform.hints, lambda: None
    )


async def leave(platform: Platform, tenant: Tenant, *jobs: JobId) -> list[MovedRow]:
    """Out of the jobs, as they are sent to their home."""
    term = platform.dispatcher.term_of(FIRST_SHARD)
    assert term is not None
    async with platform.database.background() as connection:
        gone = await store.hold_jobs(connection, FIRST_SHARD, term, tenant.id, jobs)
        assert gone == set(jobs)
        rows = await store.held_of(connection, sent(tenant), 10)
    assert [row.id for row in rows] == sorted(jobs), "nothing is lost"
    return [msgspec.json.decode(row.body, type=MovedRow) for row in rows]


async def test_a_job_that_leaves_outlasts_what_was_told_of_its_call(
    platform: Platform, tenant: Tenant
) -> None:
    """It was held here, became its home's, came back with a failover, and leaves again."""
    (job,) = await submit(platform, tenant)
    call = HeldCall(FIRST_SHARD, tenant.id, job, job, 1, b"", None, None)
    async with platform.database.background() as connection:
        await store.hold(connection, call)
        await store.offer(connection, sent(tenant), [job])
        told = json.dumps(["", "another"])
        await store.tell(connection, sent(tenant), job, told)
    await leave(platform, tenant, job)


async def test_a_job_stays_while_the_call_that_brought_it_is_not_settled(
    platform: Platform, tenant: Tenant
) -> None:
    """It was held here and handed over to this region itself; the home moved before the reply."""
    first, second = await submit(platform, tenant, new(), new())
    call = HeldCall(FIRST_SHARD, tenant.id, first, second, 2, b"", "here", NEVER_MOVED)
    term = platform.dispatcher.term_of(FIRST_SHARD)
    assert term is not None
    asked = FIRST_SHARD, term, tenant.id, [first, second]
    async with platform.database.background() as connection:
        await store.hold(connection, call)
        assert await store.hold_jobs(connection, *asked) == {second}
        assert await store.is_any_held(connection, FIRST_SHARD, tenant.id, [first])
        await store.handed_over(connection, sent(tenant, "elsewhere"), [first])
        assert await store.is_any_held(connection, FIRST_SHARD, tenant.id, [first])
        await store.handed_over(connection, sent(tenant, "here"), [first])
        assert not await store.is_any_held(connection, FIRST_SHARD, tenant.id, [first])
        assert await store.hold_jobs(connection, *asked) == {first}, "it was lost"


async def test_a_pool_that_is_missing_holds_up_its_own_jobs_alone(
    platform: Platform, tenant: Tenant
) -> None:
    jobs = await submit(platform, tenant, new(), new())
    rows = await leave(platform, tenant, *jobs)
    rows[0].pool = "gpu"
    taking = await taking_in(platform)
    refused, taken = await taking.take(MovedLot(tenant.id, HeldKind.JOB, rows, MEANT))
    assert isinstance(refused, FairwayError)
    assert (refused.code, taken) == ("UNKNOWN_POOL", None)
    asked = tenant.id, FIRST_SHARD, [row.row["id"] for row in rows]
    assert await taking.known(*asked, but_offered_to=None) == {*jobs}
    assert await taking.known(*asked, but_offered_to="us") == {*jobs}, "it was offered to nobody"
    async with platform.database.background() as connection:
        await store.offer(connection, sent(tenant), [jobs[0]])
    assert await taking.known(*asked, but_offered_to="us") == {jobs[1]}


async def test_the_other_job_of_a_key_comes_back_with_its_tenant(
    platform: Platform, tenant: Tenant
) -> None:
    """One call was accepted in both regions; ours gave way, and its tenant moves here."""
    keyed = new(idempotency_key="k", body_hash=b"same")
    (job,) = await submit(platform, tenant, keyed)
    (row,) = await leave(platform, tenant, job)
    other = platform.submissions.ids.make(FIRST_SHARD, 1)[0]
    home = Peers(lambda region, path, said: msgspec.msgpack.encode([[[other, True]]]))
    await handing(platform.database, Homes(t1="us"), home).run_once(0)
    row.row["id"] = other
    taking = await taking_in(platform)
    assert await taking.take(MovedLot(tenant.id, HeldKind.JOB, [row], MEANT)) == [None]
    assert await stored(platform, other) == (State.QUEUED, 0)


async def test_the_coming_of_a_job_settles_the_call_that_it_was_sent_with(
    platform: Platform, tenant: Tenant
) -> None:
    """The home took it, was lost, came back and handed it over here, where it ended. At home there
    again before it was asked, it was sent the call once more, had it no longer, and ran it anew."""
    jobs = await submit(platform, tenant, new(), new(), new())
    rows = await leave(platform, tenant, *jobs)
    first, second, of_three = jobs
    calls = [
        HeldCall(FIRST_SHARD, tenant.id, one, one, count, b"", "eu", NEVER_MOVED)
        for one, count in ((first, 1), (second, 1), (of_three, 3))
    ]
    async with platform.database.background() as connection:
        await connection.execute("DELETE FROM held_jobs")  # of a store where they never were
        for call in calls:
            await store.hold(connection, call)
    taking = await taking_in(platform)
    here = [row for row in rows if row.row["id"] != second]
    assert await taking.take(MovedLot(tenant.id, HeldKind.JOB, here, MEANT)) == [None, None]
    assert await stored(platform, first) == (State.QUEUED, 0)
    left = {second: "eu", of_three: "eu"}
    assert await held(platform.database, tenant.id) == left, "not all of these is known"


async def test_a_schedule_that_was_taken_is_known(platform: Platform, tenant: Tenant) -> None:
    """The answer was lost, and the home moved on: sent there by both, the older one may come first,
    and fire anew what was fired here."""
    await put(platform, tenant)
    term = platform.dispatcher.term_of(FIRST_SHARD)
    assert term is not None
    async with platform.database.background() as connection:
        await store.hold_schedules(connection, FIRST_SHARD, term, tenant.id, 10)
        (row,) = await store.held_of(connection, sent(tenant), 10)
        await store.offer(connection, sent(tenant), [row.id])
        await store.handed_over(connection, sent(tenant), [row.id])
    taking = await taking_in(platform)
    asked = tenant.id, FIRST_SHARD, [row.id]
    assert await taking.known(*asked, but_offered_to=None) == set()
    moved = msgspec.json.decode(row.body, type=MovedRow)
    assert await taking.take(MovedLot(tenant.id, HeldKind.SCHEDULE, [moved], MEANT)) == [None]
    assert await taking.known(*asked, but_offered_to=None) == {row.id}


async def test_that_a_job_was_here_is_not_forgotten_when_it_has_left(
    platform: Platform, tenant: Tenant
) -> None:
    """Who sent it here, and heard nothing, asks when it is at home elsewhere, and has ended."""
    (job,) = await submit(platform, tenant)
    await leave(platform, tenant, job)
    async with platform.database.background() as connection:
        await store.offer(connection, sent(tenant), [job])
        await store.handed_over(connection, sent(tenant), [job])
        assert await store.held_of(connection, sent(tenant), 10) == []
        assert await store.counts(connection, [FIRST_SHARD]) == []
    taking = await taking_in(platform)
    assert await taking.known(tenant.id, FIRST_SHARD, [job], but_offered_to="us") == {job}


async def test_a_job_that_comes_back_is_held_no_longer(platform: Platform, tenant: Tenant) -> None:
    """It was sent to a region that gave no answer, and came back from there."""
    (job,) = await submit(platform, tenant)
    rows = await leave(platform, tenant, job)
    async with platform.database.background() as connection:
        await store.offer(connection, sent(tenant), [job])
    taking = await taking_in(platform)
    assert await taking.take(MovedLot(tenant.id, HeldKind.JOB, rows, MEANT)) == [None]
    assert await held(platform.database, tenant.id) == {}


async def test_what_stood_still_is_not_written_after_the_home_has_moved(
    platform: Platform, tenant: Tenant
) -> None:
    """By the store's word: what the server itself knows may be of before it stood still."""
    (job,) = await submit(platform, tenant)
    rows = await leave(platform, tenant, job)
    taking, lot = await taking_in(platform), MovedLot(tenant.id, HeldKind.JOB, rows, MEANT)
    for region in ("eu", "us"):  # there and back again
        async with platform.database.background() as connection:
            await regions.set_home(connection, tenant.id, region, DirectoryTerm(1))
            now = Meant("", await regions.home_of(connection, tenant.id))
        for writing in (
            taking.take(lot),
            platform.submissions.submit(tenant, [new()], meant=MEANT),
        ):
            with pytest.raises(Unavailable) as refused:
                await writing
            assert refused.value.code == "NOT_HOME"
    refused_, taken = await asyncio.gather(
        platform.submissions.submit(tenant, [new()], meant=MEANT),
        platform.submissions.submit(tenant, [new()], meant=now),
        return_exceptions=True,
    )
    assert isinstance(refused_, Unavailable)
    assert not isinstance(taken, BaseException)
    assert await taking.take(lot._replace(meant=now)) == [None]


async def test_no_home_moves_while_jobs_of_another_region_are_written(
    platform: Platform, tenant: Tenant
) -> None:
    await taking_in(platform)

    async def move() -> None:
        async with platform.database.background() as mover, mover.transaction():
            await regions.lock_homes(mover)
            await regions.set_home(mover, tenant.id, "eu", DirectoryTerm(1))

    async with platform.database.background() as writer:
        async with writer.transaction():
            assert await regions.stay_at_home(writer, {tenant.id: MEANT}) == {tenant.id}
            moving = asyncio.create_task(move())
            assert not (await asyncio.wait({moving}, timeout=0.2))[0]
        await moving
        async with writer.transaction():
            assert await regions.stay_at_home(writer, {tenant.id: MEANT}) == set()
