"""Outcomes: which rows a batch may write, and what its answer says of the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from tests.store.rows import (
    SHARD,
    add_job,
    finish,
    is_blocked,
    lease_for,
    look,
    new_job,
    own,
    schedule,
    start,
)

from fairway.core.ids import Epoch, TenantId, Term
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State, may_move
from fairway.store.connections.database import Connection, execute
from fairway.store.leases import write_leases
from fairway.store.outcomes import (
    Settlement,
    Success,
    cancel_waiting,
    record_successes,
    settle,
)
from fairway.store.sql import load

SOON = datetime(2040, 1, 1, tzinfo=UTC)


def success(job: QueuedJob, epoch: int, result: bytes = b"1") -> Success:
    return Success(SHARD, job.tenant, job.id, Epoch(epoch), 1234, result)


def end(job: QueuedJob, epoch: int, state: State, **changes: Any) -> Settlement:
    due = SOON if state is State.SCHEDULED else None
    plain = Settlement(
        SHARD, job.tenant, job.id, Epoch(epoch), state, 1, 1, due, 99, b'{"message":"no"}'
    )
    return plain._replace(**changes)


# -- successes -----------------------------------------------------------------------------------


async def test_a_success_of_a_lease_that_was_never_written(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    epoch = lease_for(job, term).epoch
    assert await record_successes(connection, {SHARD: Term(term)}, [success(job, epoch)]) == set()
    record = await look(connection, job)
    assert (record.state, record.epoch, record.ran_us) == (State.SUCCEEDED, epoch, 1234)
    assert (record.attempts, record.deliveries, record.result) == (1, 1, b"1")
    assert record.finished_at is not None


async def test_a_success_of_a_written_lease_gives_up_the_lease(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    lease = await start(connection, job, term)
    assert (
        await record_successes(connection, {SHARD: Term(term)}, [success(job, lease.epoch)])
        == set()
    )
    row = await connection.fetchrow("SELECT state, session, token FROM jobs WHERE id = $1", job.id)
    assert tuple(row) == (State.SUCCEEDED, None, None)


@pytest.mark.parametrize("knows_place", [False, True], ids=["by key", "in place"])
async def test_the_beginning_of_an_earlier_run_is_not_the_last_ones(
    connection: Connection, knows_place: bool
) -> None:
    term, job = await own(connection), await add_job(connection)
    first = await start(connection, job, term)
    began = (await look(connection, job)).started_at
    again = end(job, first.epoch, State.QUEUED)
    assert await settle(connection, {SHARD: Term(term)}, [again]) == set()
    assert (await look(connection, job)).started_at == began
    place = await connection.fetchval("SELECT ctid::text FROM jobs WHERE id = $1", job.id)
    short = success(job, first.epoch + 1)._replace(place=place if knows_place else None)
    assert await record_successes(connection, {SHARD: Term(term)}, [short]) == set()
    assert (await look(connection, job)).started_at is None


async def test_another_epoch_than_the_lease_in_force_writes_nothing(
    connection: Connection,
) -> None:
    term, job = await own(connection), await add_job(connection)
    lease = await start(connection, job, term)
    before = await look(connection, job)
    for epoch in (lease.epoch - 1, lease.epoch + 1, 0):
        refused = await record_successes(connection, {SHARD: Term(term)}, [success(job, epoch)])
        assert refused == {job.id}
        refused = await settle(connection, {SHARD: Term(term)}, [end(job, epoch, State.DEAD)])
        assert refused == {job.id}
    assert await look(connection, job) == before


async def test_a_waiting_job_takes_only_an_epoch_that_is_new(connection: Connection) -> None:
    """After a loss was recorded the row is queued again, with the lost epoch on it."""
    term, job = await own(connection), await add_job(connection)
    lease = await start(connection, job, term)
    await settle(connection, {SHARD: Term(term)}, [end(job, lease.epoch, State.QUEUED, attempts=0)])
    before = await look(connection, job)
    late = await record_successes(connection, {SHARD: Term(term)}, [success(job, lease.epoch)])
    assert late == {job.id}
    assert await look(connection, job) == before
    assert not await record_successes(
        connection, {SHARD: Term(term)}, [success(job, lease.epoch + 1)]
    )


async def test_a_final_job_stays_as_it_ended(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    epoch = lease_for(job, term).epoch
    await record_successes(connection, {SHARD: Term(term)}, [success(job, epoch, b"first")])
    before = await look(connection, job)
    late = [success(job, epoch + 1, b"second")]
    assert await record_successes(connection, {SHARD: Term(term)}, late) == {job.id}
    for state in (State.QUEUED, State.SCHEDULED, State.DEAD, State.CANCELLED):
        assert await settle(connection, {SHARD: Term(term)}, [end(job, epoch + 1, state)]) == {
            job.id
        }
    assert not await cancel_waiting(connection, SHARD, Term(term), job.tenant, job.id)
    assert await look(connection, job) == before


async def test_a_batch_sent_again_counts_as_written(connection: Connection) -> None:
    term = await own(connection)
    jobs = [await add_job(connection) for _ in range(3)]
    batch = [success(job, lease_for(job, term).epoch) for job in jobs]
    assert await record_successes(connection, {SHARD: Term(term)}, batch) == set()
    before = [await look(connection, job) for job in jobs]
    assert await record_successes(connection, {SHARD: Term(term)}, batch) == set()
    assert [await look(connection, job) for job in jobs] == before

    doomed = await add_job(connection)
    ends = [end(doomed, lease_for(doomed, term).epoch, State.DEAD)]
    assert await settle(connection, {SHARD: Term(term)}, ends) == set()
    assert await settle(connection, {SHARD: Term(term)}, ends) == set()


async def test_one_bad_row_does_not_hold_up_the_others(connection: Connection) -> None:
    term = await own(connection)
    good, bad = await add_job(connection), await add_job(connection)
    await finish(connection, bad, datetime.now(UTC))
    batch = [success(job, lease_for(job, term).epoch) for job in (good, bad)]
    assert await record_successes(connection, {SHARD: Term(term)}, batch) == {bad.id}
    assert (await look(connection, good)).state == State.SUCCEEDED


@pytest.mark.parametrize("kind", ["success", "settlement"])
async def test_an_end_that_stands_in_a_batch_twice_is_recorded_and_so_are_the_others(
    connection: Connection, kind: str
) -> None:
    """The tenants of those behind it were taken for one another: they counted as refused."""
    term = await own(connection)
    jobs = [await add_job(connection, tenant=TenantId(number)) for number in (1, 2, 3)]
    epochs = {job.id: lease_for(job, term).epoch for job in jobs}
    terms, twice = {SHARD: Term(term)}, [jobs[0], *jobs]
    if kind == "success":
        refused = await record_successes(
            connection, terms, [success(job, epochs[job.id]) for job in twice]
        )
    else:
        refused = await settle(
            connection, terms, [end(job, epochs[job.id], State.QUEUED) for job in twice]
        )
    assert refused == set()


async def test_a_job_that_is_not_there_or_another_tenants_is_refused(
    connection: Connection,
) -> None:
    term, job, absent = await own(connection), await add_job(connection), new_job()
    stolen = success(job, lease_for(job, term).epoch)._replace(tenant=TenantId(job.tenant + 1))
    lost = success(absent, lease_for(absent, term).epoch)
    assert await record_successes(connection, {SHARD: Term(term)}, [stolen, lost]) == {
        job.id,
        absent.id,
    }
    assert (await look(connection, job)).state == State.QUEUED


@pytest.mark.parametrize("write", ["succeed", "settle", "lease"])
async def test_batches_with_the_same_jobs_in_any_order_do_not_deadlock(
    connection: Connection, other_connection: Connection, write: str
) -> None:
    """A lazy lease may be written down at the moment its run is recorded."""
    term = await own(connection)
    one, two = await add_job(connection), await add_job(connection)
    leases = [lease_for(job, term) for job in (two, one)]
    epoch = leases[0].epoch
    writes: dict[str, Callable[[], Coroutine[Any, Any, set[str]]]] = {
        "succeed": lambda: record_successes(
            other_connection, {SHARD: Term(term)}, [success(two, epoch), success(one, epoch)]
        ),
        "settle": lambda: settle(
            other_connection,
            {SHARD: Term(term)},
            [end(job, epoch, State.DEAD) for job in (two, one)],
        ),
        "lease": lambda: write_leases(other_connection, {SHARD: Term(term)}, leases),
    }
    async with connection.transaction():
        await record_successes(connection, {SHARD: Term(term)}, [success(one, epoch)])
        late = asyncio.create_task(writes[write]())
        assert await is_blocked(connection, other_connection)
        await record_successes(connection, {SHARD: Term(term)}, [success(two, epoch)])
    await late
    for job in (one, two):
        assert (await look(connection, job)).state == State.SUCCEEDED


@pytest.mark.parametrize("results", [[b"null", b"null"], [b"null", b"[1]"], [b'""', b"null"]])
async def test_a_result_of_null_is_written_like_any_other(
    connection: Connection, results: list[bytes]
) -> None:
    term, jobs = await own(connection), [await add_job(connection) for _ in results]
    epoch = lease_for(jobs[0], term).epoch
    done = [success(job, epoch, result) for job, result in zip(jobs, results, strict=True)]
    assert await record_successes(connection, {SHARD: Term(term)}, done) == set()
    assert [(await look(connection, job)).result for job in jobs] == results


# -- successes of rows whose place is known --------------------------------------------------------


async def place_of(connection: Connection, job: QueuedJob) -> str:
    place = await connection.fetchval("SELECT ctid::text FROM jobs WHERE id = $1", job.id)
    return str(place)


async def in_place(connection: Connection, job: QueuedJob, epoch: int) -> Success:
    return success(job, epoch)._replace(place=await place_of(connection, job))


async def test_a_row_is_found_where_it_was_read(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    done = await in_place(connection, job, lease_for(job, term).epoch)
    statement = load("outcomes.sql")["record_successes_in_place"]
    touched = await execute(
        connection, statement, owned=[SHARD], terms=[term], shards=f"{{{SHARD}}}", in_flow=False,
        tenants=f"{{{job.tenant}}}",
        ids=f"{{{job.id}}}", epochs=f"{{{done.epoch}}}", rans_us="{7}", results=[None],
        places=f'{{"{done.place}"}}',
    )  # fmt: skip
    assert touched == 1
    record = await look(connection, job)
    assert (record.state, record.ran_us, record.result) == (State.SUCCEEDED, 7, b"null")


async def test_a_row_that_moved_is_found_by_its_key(connection: Connection) -> None:
    """Among others that did not: all are recorded, each once."""
    term, jobs = await own(connection), [await add_job(connection) for _ in range(3)]
    epoch = lease_for(jobs[0], term).epoch
    done = [await in_place(connection, job, epoch) for job in jobs]
    await connection.execute("UPDATE jobs SET priority = 6 WHERE id = $1", jobs[1].id)
    assert await place_of(connection, jobs[1]) != done[1].place
    assert await record_successes(connection, {SHARD: Term(term)}, done) == set()
    for job in jobs:
        record = await look(connection, job)
        assert (record.state, record.attempts) == (State.SUCCEEDED, 1)


async def test_a_place_with_another_row_in_it_is_left_alone(connection: Connection) -> None:
    term, job, other = await own(connection), await add_job(connection), await add_job(connection)
    there = await place_of(connection, other)
    done = success(job, lease_for(job, term).epoch)._replace(place=there)
    assert await record_successes(connection, {SHARD: Term(term)}, [done]) == set()
    assert (await look(connection, job)).state == State.SUCCEEDED
    assert (await look(connection, other)).state == State.QUEUED


async def test_a_known_place_opens_no_guard(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    lease = await start(connection, job, term)
    before = await look(connection, job)
    for epoch, under in ((lease.epoch - 1, term), (lease.epoch + 1, term), (lease.epoch, term - 1)):
        done = [await in_place(connection, job, epoch)]
        assert await record_successes(connection, {SHARD: Term(under)}, done) == {job.id}
    assert await look(connection, job) == before


# -- every other end -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_written", [False, True], ids=["lazy", "written"])
@pytest.mark.parametrize(
    "state", [State.SCHEDULED, State.QUEUED, State.DEAD, State.CANCELLED], ids=str
)
async def test_settling_writes_state_counters_and_time(
    connection: Connection, state: State, is_written: bool
) -> None:
    term, job = await own(connection), await add_job(connection)
    lease = await start(connection, job, term) if is_written else lease_for(job, term)
    ending = end(job, lease.epoch, state, attempts=2, deliveries=3)
    assert await settle(connection, {SHARD: Term(term)}, [ending]) == set()
    record = await look(connection, job)
    assert (record.state, record.attempts, record.deliveries) == (state, 2, 3)
    assert (record.epoch, record.ran_us, record.error) == (lease.epoch, 99, b'{"message":"no"}')
    assert record.execute_at == ending.execute_at
    assert (record.finished_at is not None) == state.is_final


async def test_an_end_without_words_keeps_the_last_error(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    await settle(
        connection, {SHARD: Term(term)}, [end(job, lease_for(job, term).epoch, State.QUEUED)]
    )
    later = (await look(connection, job)).epoch + 1
    await settle(connection, {SHARD: Term(term)}, [end(job, later, State.QUEUED, error=None)])
    assert (await look(connection, job)).error == b'{"message":"no"}'


async def test_the_store_refuses_what_no_state_allows(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    epoch = lease_for(job, term).epoch
    homeless = end(job, epoch, State.SCHEDULED, execute_at=None)
    with pytest.raises(asyncpg.CheckViolationError, match="scheduled_has_a_time"):
        await settle(connection, {SHARD: Term(term)}, [homeless])
    with pytest.raises(asyncpg.CheckViolationError, match="running_has_a_lease"):
        await settle(connection, {SHARD: Term(term)}, [end(job, epoch, State.RUNNING)])
    assert (await look(connection, job)).state == State.QUEUED


# -- cancelling ----------------------------------------------------------------------------------


async def test_waiting_jobs_are_cancelled_and_running_ones_are_not(
    connection: Connection,
) -> None:
    term = await own(connection)
    queued, due, running = [await add_job(connection) for _ in range(3)]
    await schedule(connection, due, due_in_seconds=60)
    await start(connection, running, term)
    done = [
        await cancel_waiting(connection, SHARD, Term(term), job.tenant, job.id)
        for job in (queued, due, running)
    ]
    assert done == [True, True, False]
    for job in (queued, due):
        record = await look(connection, job)
        assert record.state == State.CANCELLED
    assert (await look(connection, running)).state == State.RUNNING


async def test_only_its_own_tenant_cancels_a_job(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    assert not await cancel_waiting(connection, SHARD, Term(term), TenantId(job.tenant + 1), job.id)
    assert (await look(connection, job)).state == State.QUEUED


# -- the table of moves --------------------------------------------------------------------------


@pytest.mark.parametrize("before", list(State), ids=str)
async def test_no_end_of_a_run_makes_an_illegal_move(connection: Connection, before: State) -> None:
    """Whatever state a row is in: what the statements write, the table of moves allows."""
    term = await own(connection)
    for after in (State.SUCCEEDED, State.SCHEDULED, State.QUEUED, State.DEAD, State.CANCELLED):
        job = await add_job(connection)
        epoch = await force_state(connection, job, before, term)
        if after is State.SUCCEEDED:
            refused = await record_successes(connection, {SHARD: Term(term)}, [success(job, epoch)])
        else:
            refused = await settle(connection, {SHARD: Term(term)}, [end(job, epoch, after)])
        moved = State((await look(connection, job)).state)
        is_lazy_return = (before, after) == (State.QUEUED, State.QUEUED)
        assert moved == before or may_move(before, moved)
        assert (moved == before and not is_lazy_return) == bool(refused) or before == after


async def force_state(connection: Connection, job: QueuedJob, state: State, term: int) -> int:
    """Put a row into any state; answers the epoch that a run of it would report."""
    if state is State.RUNNING:
        return (await start(connection, job, term)).epoch
    await connection.execute(
        "UPDATE jobs SET state = $2, execute_at = $3, finished_at = $4 WHERE id = $1",
        job.id,
        state.value,
        SOON if state is State.SCHEDULED else None,
        datetime.now(UTC) - timedelta(seconds=1) if state.is_final else None,
    )
    return lease_for(job, term).epoch
