"""Old partitions go; what is not done or not old is carried on."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from tests.store.rows import (
    SHARD,
    add_job,
    add_jobs,
    finish,
    is_blocked,
    lease_for,
    look,
    new_job,
    own,
    promote_all,
    schedule,
    start,
)
from tests.store.schema.test_partitions import NOW, OLD, home_of

from fairway.core.ids import TenantId, Term
from fairway.core.lifecycle import State
from fairway.store import history, outcomes
from fairway.store.backlog import StreamWalk
from fairway.store.connections.database import Connection
from fairway.store.schema.partition_retirement import (
    carry_missed,
    detach,
    detached,
    drop,
    late_rows,
    page_count,
    sweep_carried,
)
from fairway.store.schema.partitions import (
    Partition,
    existing,
    make_ahead,
    partition_at,
)


@pytest.fixture
def connection(owner: Connection) -> Connection:
    """Tables are changed by who owns them."""
    return owner


KEEP_SINCE = NOW - timedelta(days=7)


async def old_partition(connection: Connection) -> Partition:
    await make_ahead(connection, OLD)
    return partition_at(OLD)


async def retire(connection: Connection, partition: Partition, keep_since: datetime) -> int:
    """All steps of a small partition's end; answers how many rows were carried."""
    pages = range(await page_count(connection, partition.name))
    late = await late_rows(connection, partition.name, pages, keep_since)
    carried = await detach(connection, partition.name, late)
    assert await detached(connection) == [partition.name]
    carried += await carry_missed(connection, partition.name, pages, keep_since)
    await drop(connection, partition.name)
    assert await detached(connection) == []
    return carried


async def test_a_carried_job_that_is_replayed_meanwhile_is_not_swept(
    connection: Connection, other_connection: Connection
) -> None:
    job = await add_job(connection, at=OLD)
    await finish(connection, job, OLD)
    async with connection.transaction():
        await connection.execute("UPDATE jobs SET state = 1, finished_at = NULL")
        late = asyncio.create_task(sweep_carried(other_connection, KEEP_SINCE, 10))
        assert await is_blocked(connection, other_connection)
    assert await late == 0
    assert (await look(connection, job)).state == State.QUEUED


async def test_a_retired_partition_takes_only_what_is_done_and_old(
    connection: Connection,
) -> None:
    partition = await old_partition(connection)
    term = await own(connection)
    jobs = {
        name: new_job(at=OLD, tenant=1)
        for name in ("done", "lately", "queued", "running", "next_year")
    }
    await add_jobs(connection, *jobs.values())
    await finish(connection, jobs["done"], OLD)
    await finish(connection, jobs["lately"], NOW - timedelta(days=1))
    lease = await start(connection, jobs["running"], term)
    await schedule(connection, jobs["next_year"], due_in_seconds=365 * 86400)
    before = {name: await look(connection, job) for name, job in jobs.items()}

    assert await retire(connection, partition, KEEP_SINCE) == 4

    assert partition not in await existing(connection)
    assert await history.read_job(connection, SHARD, TenantId(1), jobs["done"].id) is None
    for name in ("lately", "queued", "running", "next_year"):
        assert await look(connection, jobs[name]) == before[name]
        assert await home_of(connection, jobs[name]) == "jobs_carried"
    heads = await StreamWalk(SHARD, 10).next_page(connection)
    assert list(heads.values()) == [jobs["queued"].id]
    success = outcomes.Success(SHARD, TenantId(1), jobs["running"].id, lease.epoch, 1, b"1")
    assert await outcomes.record_successes(connection, {SHARD: Term(term)}, [success]) == set()


async def test_a_job_for_next_year_runs_in_its_time(connection: Connection) -> None:
    partition, term = await old_partition(connection), await own(connection)
    job = await add_job(connection, at=OLD)
    await schedule(connection, job, due_in_seconds=365 * 86400)
    await retire(connection, partition, KEEP_SINCE)
    assert await promote_all(connection, term) == []
    await schedule(connection, job, due_in_seconds=-1)  # a year goes by
    assert [found.id for found in await promote_all(connection, term)] == [job.id]
    lease = lease_for(job, term)
    success = outcomes.Success(SHARD, TenantId(1), job.id, lease.epoch, 1, b"1")
    assert await outcomes.record_successes(connection, {SHARD: Term(term)}, [success]) == set()
    assert await sweep_carried(connection, KEEP_SINCE, 10) == 0
    assert (await look(connection, job)).state == State.SUCCEEDED


async def test_carried_jobs_go_when_they_are_done_and_old(connection: Connection) -> None:
    partition = await old_partition(connection)
    done = [new_job(at=OLD) for _ in range(5)]
    waiting = new_job(at=OLD)
    await add_jobs(connection, waiting, *done)
    await retire(connection, partition, KEEP_SINCE)
    for job in done:
        await finish(connection, job, KEEP_SINCE - timedelta(seconds=1))
    rounds = [await sweep_carried(connection, KEEP_SINCE, 3) for _ in range(3)]
    assert rounds == [3, 2, 0]
    assert (await look(connection, waiting)).state == State.QUEUED
