"""Fencing: an owner that was replaced can write nothing, however late its statement arrives.

Every statement that changes a job for its owner is listed once, in WRITES; each is tried after a
take-over, and again while it was already waiting for the take-over to commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from tests.store.rows import (
    SHARD,
    add_job,
    is_blocked,
    lease_for,
    look,
    own,
    promote_all,
    schedule,
    start,
)

from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.store import leadership, leases, outcomes, promotion
from fairway.store.database import Connection

Write = Callable[[Connection, int, "Scene"], Coroutine[Any, Any, Any]]


class Scene(NamedTuple):
    """What an owner of term `term` had going."""

    term: int
    queued: QueuedJob
    running: QueuedJob
    due: QueuedJob
    epoch: int  # of the running job's lease

    @property
    def jobs(self) -> tuple[QueuedJob, ...]:
        return self.queued, self.running, self.due


async def succeed(connection: Connection, term: int, scene: Scene) -> Any:
    done = [
        outcomes.Success(1, scene.running.id, scene.epoch, 1, b"1"),
        outcomes.Success(1, scene.queued.id, lease_for(scene.queued, term).epoch, 1, b"1"),
    ]
    return len(done) - len(await outcomes.record_successes(connection, SHARD, term, done))


async def settle(connection: Connection, term: int, scene: Scene) -> Any:
    job = scene.running
    end = outcomes.Settlement(1, job.id, scene.epoch, State.DEAD, 1, 1, None, 1, None)
    return 1 - len(await outcomes.settle(connection, SHARD, term, [end]))


async def write_leases(connection: Connection, term: int, scene: Scene) -> Any:
    return await leases.write_leases(connection, SHARD, term, [lease_for(scene.queued, term)])


async def promote(connection: Connection, term: int, scene: Scene) -> Any:
    return await promote_all(connection, term)


async def reschedule(connection: Connection, term: int, scene: Scene) -> Any:
    moment = datetime.now(UTC) + timedelta(hours=1)
    return await promotion.reschedule(connection, SHARD, term, 1, scene.due.id, moment)


async def cancel_queued(connection: Connection, term: int, scene: Scene) -> Any:
    return await outcomes.cancel_waiting(connection, SHARD, term, 1, scene.queued.id)


async def cancel_due(connection: Connection, term: int, scene: Scene) -> Any:
    return await outcomes.cancel_waiting(connection, SHARD, term, 1, scene.due.id)


WRITES = [succeed, settle, write_leases, promote, reschedule, cancel_queued, cancel_due]
each_write = pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)


@pytest.fixture
async def scene(connection: Connection) -> Scene:
    term = await own(connection, "first")
    queued, running, due = [await add_job(connection) for _ in range(3)]
    lease = await start(connection, running, term)
    await schedule(connection, due, due_in_seconds=-1)
    return Scene(term, queued, running, due, lease.epoch)


async def rows(connection: Connection, scene: Scene) -> list[Any]:
    return [await look(connection, job) for job in scene.jobs]


@each_write
async def test_the_owner_writes(connection: Connection, scene: Scene, write: Write) -> None:
    before = await rows(connection, scene)
    assert await write(connection, scene.term, scene)
    assert await rows(connection, scene) != before


@each_write
async def test_an_old_owner_writes_nothing(
    connection: Connection, scene: Scene, write: Write
) -> None:
    await own(connection, "second")
    before = await rows(connection, scene)
    assert not await write(connection, scene.term, scene)
    assert await rows(connection, scene) == before


@each_write
async def test_an_old_owners_statement_that_waited_for_the_take_over_writes_nothing(
    connection: Connection, other_connection: Connection, scene: Scene, write: Write
) -> None:
    before = await rows(connection, scene)
    async with connection.transaction():
        await own(connection, "second")
        late = asyncio.create_task(write(other_connection, scene.term, scene))
        assert await is_blocked(connection, other_connection)
    assert not await late
    assert await rows(connection, scene) == before


@each_write
async def test_a_take_over_waits_for_the_old_owners_last_statement(
    connection: Connection, other_connection: Connection, scene: Scene, write: Write
) -> None:
    await connection.execute("UPDATE shards SET expires_at = '-infinity'")
    async with connection.transaction():
        assert await write(connection, scene.term, scene)
        claim = leadership.claim_shards(other_connection, "second", "", 60)
        takeover = asyncio.create_task(claim)
        assert await is_blocked(connection, other_connection)
    assert (await takeover) == {SHARD: scene.term + 1}
    now = await rows(connection, scene)
    assert any(record.state != State.QUEUED for record in now)
    await write(connection, scene.term, scene)
    assert await rows(connection, scene) == now


async def test_a_term_that_ran_out_unclaimed_still_writes(
    connection: Connection, scene: Scene
) -> None:
    """The term fences, not the time: nobody else may have granted anything yet."""
    await connection.execute("UPDATE shards SET expires_at = '-infinity'")
    assert await succeed(connection, scene.term, scene) == 2
