"""Scheduled jobs in the store: what is due, in which order, under which limits, and who wins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.store.rows import (
    SHARD,
    add_job,
    is_blocked,
    look,
    new_job,
    own,
    promote_all,
    schedule,
    start,
)

from fairway.core.ids import TenantId, Term
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.scheduling.timing import OnLate, Timing
from fairway.store import outcomes, promotion, submissions
from fairway.store.connections.database import Connection
from fairway.store.promotion import due_bunches, promote_due, reschedule, seconds_to_next

HEAD = (-1, TenantId(-1))


def ids(jobs: list[QueuedJob]) -> list[str]:
    return [job.id for job in jobs]


async def test_only_what_is_due_is_promoted_and_its_time_is_kept(connection: Connection) -> None:
    term = await own(connection)
    due, later, queued, running = [await add_job(connection) for _ in range(4)]
    await schedule(connection, due, due_in_seconds=-1)
    await schedule(connection, later, due_in_seconds=60)
    await start(connection, running, term)
    (promoted,) = await promote_all(connection, term)
    assert promoted.id == due.id
    assert await promote_all(connection, term) == []
    record = await look(connection, due)
    assert record.state == State.QUEUED
    assert record.execute_at is not None
    assert promoted.timing == [int(record.execute_at.timestamp() * 1000), None, None]
    states = [(await look(connection, job)).state for job in (later, queued, running)]
    assert states == [State.SCHEDULED, State.QUEUED, State.RUNNING]


async def test_a_bunch_is_a_tenant_in_a_second_and_the_walk_goes_on_after_one(
    connection: Connection,
) -> None:
    base = int(datetime.now(UTC).timestamp()) - 10
    for seconds, tenant in ((0.9, 2), (0.1, 1), (0.2, 1), (2.5, 2), (100, 1)):
        job = new_job(tenant=tenant, timing=[round((base + seconds) * 1000), None, None])
        await submissions.insert_jobs(connection, SHARD, [job], {job.id})
    found = await due_bunches(connection, SHARD, HEAD, 100)
    one, two = TenantId(1), TenantId(2)
    places = [(base, one), (base, two), (base + 2, two)]
    assert [(s.second, s.tenant) for s in found] == places, "the next minute is not looked at"
    assert 8_000 < found[1].age_ms < found[0].age_ms
    assert [s.tenant for s in await due_bunches(connection, SHARD, HEAD, 2)] == [1, 2]
    later = await due_bunches(connection, SHARD, places[0], 1)
    assert [(s.second, s.tenant) for s in later] == [places[1]]


async def test_promotion_is_bounded_by_tenant_and_oldest_first(connection: Connection) -> None:
    term = await own(connection)
    jobs = [await add_job(connection) for _ in range(5)]
    for place, job in enumerate(jobs):
        await schedule(connection, job, due_in_seconds=-60 + place)
    alone = await add_job(connection, tenant=2)
    await schedule(connection, alone, due_in_seconds=-1)
    rounds = [ids(await promote_all(connection, term, most=2)) for _ in range(3)]
    assert rounds == [sorted([*ids(jobs[:2]), alone.id]), ids(jobs[2:4]), ids(jobs[4:])]


async def test_a_tenant_without_a_share_waits(connection: Connection) -> None:
    term = await own(connection)
    job = await add_job(connection)
    await schedule(connection, job, due_in_seconds=-1)
    bunches = await due_bunches(connection, SHARD, HEAD, 10)
    assert await promote_due(connection, SHARD, Term(term), bunches, {TenantId(2): 5}) == []


async def test_how_long_until_the_next_second_with_a_job(connection: Connection) -> None:
    assert await seconds_to_next(connection, SHARD, HEAD) is None
    for seconds in (90, 30, 60):
        await schedule(connection, await add_job(connection), due_in_seconds=seconds)
    found = await seconds_to_next(connection, SHARD, HEAD)
    assert found == pytest.approx(29.5, abs=5)


async def test_a_second_that_began_since_the_look_is_the_next_one(connection: Connection) -> None:
    """It was passed over until the second after it: its jobs were late by up to a second."""
    await schedule(connection, await add_job(connection), due_in_seconds=-9)
    (bunch,) = await due_bunches(connection, SHARD, HEAD, 10)
    for seconds in (-2, 30):
        await schedule(connection, await add_job(connection), due_in_seconds=seconds)
    found = await seconds_to_next(connection, SHARD, (bunch.second, bunch.tenant))
    assert found is not None
    assert found < 0, "look again at once"


async def test_a_job_is_written_with_its_times(connection: Connection) -> None:
    timing = Timing(1_800_000_000_123, 1_800_000_060_456, OnLate.FLAG)
    later, plain = new_job(timing=timing.row), new_job()
    due = new_job(timing=[1000, None, None])
    await submissions.insert_jobs(connection, SHARD, [later, plain, due], {later.id})
    record = await look(connection, later)
    assert record.state == State.SCHEDULED
    assert record.execute_at == datetime.fromtimestamp(1_800_000_000.123, UTC)
    assert record.not_after == datetime.fromtimestamp(1_800_000_060.456, UTC)
    assert record.on_late == OnLate.FLAG
    assert (await look(connection, plain)).state == State.QUEUED
    assert (await look(connection, plain)).execute_at is None
    assert (await look(connection, due)).state == State.QUEUED


# -- races: one winner, nothing doubled ----------------------------------------------------------


async def cancel(connection: Connection, term: int, job: QueuedJob) -> Any:
    return await outcomes.cancel_waiting(connection, SHARD, Term(term), TenantId(1), job.id)


async def move(connection: Connection, term: int, job: QueuedJob) -> Any:
    moment = datetime.now(UTC) + timedelta(hours=1)
    return await reschedule(connection, SHARD, Term(term), TenantId(1), job.id, moment)


async def promote(connection: Connection, term: int, job: QueuedJob) -> Any:
    return ids(await promote_all(connection, term)) == [job.id]


Step = Callable[[Connection, int, QueuedJob], Coroutine[Any, Any, Any]]
PAIRS: list[tuple[Step, Step, State]] = [
    (cancel, promote, State.CANCELLED),
    (move, promote, State.SCHEDULED),
    (promote, move, State.QUEUED),
    (cancel, move, State.CANCELLED),
]


@pytest.mark.parametrize(("first", "second", "state"), PAIRS)
async def test_of_two_at_the_same_moment_the_first_wins(
    connection: Connection, other_connection: Connection, first: Step, second: Step, state: State
) -> None:
    term, job = await own(connection), await add_job(connection)
    await schedule(connection, job, due_in_seconds=-1)
    async with connection.transaction():
        assert await first(connection, term, job)
        late = asyncio.create_task(second(other_connection, term, job))
        assert await is_blocked(connection, other_connection)
    assert not await late
    assert (await look(connection, job)).state == state


async def test_a_cancellation_after_promotion_still_counts(
    connection: Connection, other_connection: Connection
) -> None:
    term, job = await own(connection), await add_job(connection)
    await schedule(connection, job, due_in_seconds=-1)
    async with connection.transaction():
        assert await promote(connection, term, job)
        late = asyncio.create_task(cancel(other_connection, term, job))
        assert await is_blocked(connection, other_connection)
    assert await late
    assert (await look(connection, job)).state == State.CANCELLED


# -- last moments --------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", OnLate)
async def test_only_waiting_jobs_to_be_skipped_expire(connection: Connection, rule: OnLate) -> None:
    term = await own(connection)
    past = [1000, 2000, int(rule)]
    queued, asleep, running = [new_job(timing=past) for _ in range(3)]
    future = new_job(timing=[1000, 4_000_000_000_000, int(rule)])
    jobs = [queued, asleep, running, future]
    await submissions.insert_jobs(connection, SHARD, jobs, {asleep.id})
    await start(connection, running, term)
    late = await promotion.passed_last_moments(connection, SHARD, 10)
    if rule is not OnLate.SKIP:
        assert late == []
        return
    assert {job.id for job in late} == {queued.id, asleep.id}
    everyone = [*late, late[0]._replace(id=running.id), late[0]._replace(id=future.id)]
    done = await promotion.expire(connection, SHARD, Term(term), everyone, b"{}")
    assert done == {queued.id, asleep.id}
    states = [(await look(connection, job)).state for job in jobs]
    assert states == [State.EXPIRED, State.EXPIRED, State.RUNNING, State.QUEUED]
    assert await promotion.expire(connection, SHARD, Term(term), late, b"{}") == set()
