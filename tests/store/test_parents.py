"""Successes that start jobs: written together with what they start, or neither is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace
from tests.store.rows import SHARD, add_job, finish, lease_for, look, new_job, own, start

from fairway.core.ids import Epoch, TenantId, Term, shard_of
from fairway.core.job import JobMarks, QueuedJob
from fairway.core.lifecycle import State
from fairway.core.run.follow_up_ids import follow_up_ids
from fairway.core.run.follow_ups import Children
from fairway.store.connections.database import Connection
from fairway.store.outcomes import Parent, Success, record_parents

NOW_MS = int(datetime.now(UTC).timestamp() * 1000)
LATER_MS = NOW_MS + 600_000


def parent_of(job: QueuedJob, epoch: int, count: int = 2, **changes: Any) -> Parent:
    ids = follow_up_ids(job.id, Epoch(epoch), NOW_MS, count)
    jobs = [
        replace(new_job(tenant=job.tenant, payload=b'{"n":1}', **changes), id=id_) for id_ in ids
    ]
    success = Success(shard_of(job.id), job.tenant, job.id, Epoch(epoch), 99, b"7")
    return Parent(success, Children(NOW_MS, jobs))


async def children(connection: Connection, parent: Parent) -> list[Any]:
    ids = [job.id for job in parent.children.jobs]
    return list(await connection.fetch(
        "SELECT id::text, tenant, state, parent::text, payload, execute_at FROM jobs"
        " WHERE id = ANY($1::uuid[]) ORDER BY id", ids,
    ))  # fmt: skip


async def test_a_success_and_what_it_starts_are_written_together(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    parent = parent_of(job, lease_for(job, term).epoch)
    assert await record_parents(connection, {SHARD: Term(term)}, [parent]) == set()
    record = await look(connection, job)
    assert (record.state, record.result, record.attempts) == (State.SUCCEEDED, b"7", 1)
    assert (record.children, record.children_ms, record.parent) == (2, NOW_MS, None)
    found = await children(connection, parent)
    assert [row["id"] for row in found] == [one.id for one in parent.children.jobs]
    assert {(row["tenant"], row["state"], row["parent"]) for row in found} == {(1, 1, job.id)}


async def test_each_child_has_its_own_limits_and_marks(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    parent = parent_of(job, lease_for(job, term).epoch, 3)
    first, second, third = parent.children.jobs
    marks: dict[str, JobMarks] = {
        first.id: JobMarks(["a:1", 'b "c", \\d'], None),
        third.id: JobMarks(None, b'{"k":"v"}'),
    }
    born = Children(NOW_MS, [first, replace(second, limits=b'[["k",1,0]]'), third], marks=marks)
    await record_parents(connection, {SHARD: Term(term)}, [parent._replace(children=born)])
    rows = [await look(connection, one) for one in (first, second, third)]
    assert [(row.tags, row.metadata, row.limits) for row in rows] == [
        (["a:1", 'b "c", \\d'], None, None),
        (None, None, b'[["k",1,0]]'),
        (None, b'{"k":"v"}', None),
    ]


async def test_of_many_each_starts_its_own(connection: Connection) -> None:
    term = await own(connection)
    jobs = [await add_job(connection, tenant=TenantId(n)) for n in (2, 1, 2)]
    parents = [parent_of(job, lease_for(job, term).epoch, n) for n, job in enumerate(jobs, 1)]
    assert await record_parents(connection, {SHARD: Term(term)}, parents) == set()
    for n, parent in enumerate(parents, 1):
        rows = await children(connection, parent)
        said = (parent.success.job, parent.success.tenant)
        assert [(row["parent"], row["tenant"]) for row in rows] == [said] * n


async def test_one_for_later_waits_for_its_time(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    parent = parent_of(job, lease_for(job, term).epoch, 2, timing=[LATER_MS, None, None])
    first = parent.children.jobs[0]
    later = parent.children._replace(scheduled=frozenset([first.id]))
    assert not await record_parents(
        connection, {SHARD: Term(term)}, [parent._replace(children=later)]
    )
    states = [row["state"] for row in await children(connection, parent)]
    assert states == [State.SCHEDULED, State.QUEUED]


async def test_said_again_nothing_is_made_twice(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    parent = parent_of(job, lease_for(job, term).epoch)
    for _ in range(3):
        assert await record_parents(connection, {SHARD: Term(term)}, [parent]) == set()
    assert len(await children(connection, parent)) == 2


@pytest.mark.parametrize("lost", ["granted anew", "ended otherwise", "another owner"])
async def test_a_run_that_lost_its_lease_starts_nothing(connection: Connection, lost: str) -> None:
    term, job = await own(connection), await add_job(connection)
    epoch = lease_for(job, term).epoch
    if lost == "granted anew":
        await start(connection, replace(job, epoch=epoch), term)
    elif lost == "ended otherwise":
        await finish(connection, job, datetime.now(UTC))
    else:
        await own(connection, "second")
    parent = parent_of(job, epoch)
    assert await record_parents(connection, {SHARD: Term(term)}, [parent]) == {job.id}
    assert await children(connection, parent) == []


async def test_a_child_that_cannot_be_written_leaves_its_parent_as_it_was(
    connection: Connection,
) -> None:
    term, job = await own(connection), await add_job(connection)
    parent = parent_of(job, lease_for(job, term).epoch, timing=[None, LATER_MS, 1])
    with pytest.raises(asyncpg.CheckViolationError):
        await record_parents(connection, {SHARD: Term(term)}, [parent])
    assert (await look(connection, job)).state == State.QUEUED
