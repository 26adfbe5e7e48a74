"""Unfinished jobs leave for another region and are taken in there: none is lost on the way."""

from __future__ import annotations

import json

import msgspec
from tests.services.platform_room import new, stored, submit
from tests.services.regions.test_hand_over import Homes, Peers, handing

from fairway.core.errors import FairwayError
from fairway.core.ids import FIRST_SHARD, JobId
from fairway.core.lifecycle import State
from fairway.core.regions.held import HeldCall, HeldKind
from fairway.core.tenant import Tenant
from fairway.services.platform import Platform
from fairway.services.regions.moved_rows import MovedLot, MovedRow, MovedRows
from fairway.store.regions import held_jobs as store


async def leave(platform: Platform, tenant: Tenant, *jobs: JobId) -> list[MovedRow]:
    """Out of the jobs, as they are sent to their home."""
    term = platform.dispatcher.term_of(FIRST_SHARD)
    assert term is not None
    async with platform.database.background() as connection:
        gone = await store.hold_jobs(connection, FIRST_SHARD, term, tenant.id, jobs)
        assert gone == set(jobs)
        rows = await store.held_of(connection, FIRST_SHARD, tenant.id, "us", 10)
    assert [row.id for row in rows] == sorted(jobs), "nothing is lost"
    return [msgspec.json.decode(row.body, type=MovedRow) for row in rows]


async def test_a_job_that_leaves_outlasts_what_was_told_of_its_call(
    platform: Platform, tenant: Tenant
) -> None:
    """It was held here, became its home's, came back with a failover, and leaves again."""
    (job,) = await submit(platform, tenant)
    call = HeldCall(FIRST_SHARD, tenant.id, job, job, 1, b"", None)
    async with platform.database.background() as connection:
        await store.hold(connection, call)
        told = json.dumps(["", "another"])
        await store.tell(connection, FIRST_SHARD, tenant.id, job, told)
    await leave(platform, tenant, job)


async def test_a_pool_that_is_missing_holds_up_its_own_jobs_alone(
    platform: Platform, tenant: Tenant
) -> None:
    jobs = await submit(platform, tenant, new(), new())
    rows = await leave(platform, tenant, *jobs)
    rows[0].pool = "gpu"
    taking = MovedRows(
        platform.database, platform.directory, platform.dispatcher, platform.hints, lambda: None
    )
    refused, taken = await taking.take(MovedLot(tenant.id, HeldKind.JOB, rows))
    assert isinstance(refused, FairwayError)
    assert (refused.code, taken) == ("UNKNOWN_POOL", None)
    asked = tenant.id, FIRST_SHARD, [row.row["id"] for row in rows]
    assert await taking.known(*asked, but_offered_to=None) == {*jobs}
    assert await taking.known(*asked, but_offered_to="us") == {*jobs}, "it was offered to nobody"
    async with platform.database.background() as connection:
        await store.offer(connection, FIRST_SHARD, tenant.id, [jobs[0]], "us")
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
    await handing(platform.database, Homes(**{f"t{tenant.id}": "us"}), home).run_once(0)
    row.row["id"] = other
    taking = MovedRows(
        platform.database, platform.directory, platform.dispatcher, platform.hints, lambda: None
    )
    assert await taking.take(MovedLot(tenant.id, HeldKind.JOB, [row])) == [None]
    assert await stored(platform, other) == (State.QUEUED, 0)
