"""Checkpoint rows: written under the lease in force only, the newest first, the past forgotten."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from tests.store.rows import SHARD, add_job, finish, is_blocked, own, start

from fairway.core.ids import Epoch, JobId, TenantId
from fairway.core.job import QueuedJob
from fairway.core.object_storage.object_names import ObjectFacts
from fairway.core.run.lease import LeaseProof
from fairway.store import checkpoints as store
from fairway.store.checkpoints import NEWEST_EPOCH
from fairway.store.connections.database import Connection
from fairway.store.leases import LeaseRow


def facts(name: str) -> ObjectFacts:
    return ObjectFacts(name, 3, b"\x01" * 32)


def proof(lease: LeaseRow) -> LeaseProof:
    return LeaseProof(lease.tenant, JobId(lease.job), lease.epoch, lease.token)


async def save(connection: Connection, held: LeaseProof, number: int) -> bool:
    object_facts = facts(f"{held.epoch}-{number}")
    return (await store.save_checkpoint(connection, SHARD, held, number, object_facts)) is not None


async def names(
    connection: Connection, job: QueuedJob, before_epoch: int = NEWEST_EPOCH
) -> list[str]:
    found = await store.newest_checkpoints(
        connection, SHARD, job.tenant, job.id, before_epoch=Epoch(before_epoch), limit=10
    )
    return [saved.facts.name for saved in found]


async def test_only_the_lease_in_force_can_save(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection, pool=3)
    held = proof(await start(connection, job, term))
    assert await save(connection, held, 1)
    assert not await save(connection, held._replace(epoch=Epoch(held.epoch - 1)), 2)
    assert not await save(connection, held._replace(epoch=Epoch(held.epoch + 1)), 2)
    assert not await save(connection, held._replace(token="0" * 32), 2)
    assert not await save(connection, held._replace(tenant=TenantId(held.tenant + 1)), 2)
    await connection.execute("UPDATE jobs SET state = 1, session = NULL, token = NULL")
    assert not await save(connection, held, 2)
    assert await names(connection, job) == [f"{held.epoch}-1"]


async def test_saved_again_it_is_one(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection, pool=3)
    held = proof(await start(connection, job, term))
    assert await save(connection, held, 1)
    assert await save(connection, held, 1)
    assert len(await names(connection, job)) == 1


async def test_the_newest_first_and_only_of_earlier_runs(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection, pool=3)
    held = proof(await start(connection, job, term))
    for number in (1, 2, 10):
        assert await save(connection, held, number)
    e = held.epoch
    assert await names(connection, job) == [f"{e}-10", f"{e}-2", f"{e}-1"]
    assert await names(connection, job, before_epoch=e) == []
    dropped = await store.drop_older_checkpoints(connection, SHARD, job.tenant, job.id, 2)
    assert dropped == [f"{e}-1"]


async def test_a_save_waits_for_a_loss_of_the_lease_that_is_under_way(
    connection: Connection, other_connection: Connection
) -> None:
    """Whoever comes first wins whole: no row of a lost lease appears after the loss."""
    term, job = await own(connection), await add_job(connection, pool=3)
    held = proof(await start(connection, job, term))
    loss = connection.transaction()
    await loss.start()
    await connection.execute("UPDATE jobs SET epoch = epoch + 1 WHERE id = $1", job.id)
    saving = asyncio.create_task(save(other_connection, held, 1))
    assert await is_blocked(connection, other_connection)
    await loss.commit()
    assert not await saving
    assert await names(connection, job) == []


async def test_what_ended_well_is_forgotten_and_what_died_is_kept(connection: Connection) -> None:
    term = await own(connection)
    jobs = [await add_job(connection, pool=3) for _ in range(3)]
    for job in jobs:
        assert await save(connection, proof(await start(connection, job, term)), 1)
    await finish(connection, jobs[0], datetime.now(UTC))
    await connection.execute(
        "UPDATE jobs SET state = 4, finished_at = now() WHERE id = $1", jobs[1].id
    )
    assert len(await store.drop_finished_checkpoints(connection, SHARD, 100)) == 1
    await connection.execute("DELETE FROM jobs WHERE id = $1", jobs[1].id)
    assert len(await store.drop_finished_checkpoints(connection, SHARD, 100)) == 1
    asked = [(job.tenant, job.id) for job in jobs]
    assert await store.jobs_with_checkpoints(connection, SHARD, asked) == {jobs[2].id}
