"""Submissions: what is copied in, and who gets an Idempotency-Key."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from tests.store.rows import SHARD, add_job, add_jobs, is_blocked, look, new_job

from fairway.core.ids import JobId, TenantId
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.store.connections.database import Connection
from fairway.store.submissions import (
    KEY_LIFE,
    KeyClaim,
    KeyHolder,
    claim_and_insert,
    claim_keys,
    forget_keys,
)


def claim(key: str, body: bytes = b"body", tenant: int = 1) -> KeyClaim:
    return KeyClaim(TenantId(tenant), key, body, new_job().id)


async def test_a_batch_is_on_disk_as_it_was_sent(connection: Connection) -> None:
    jobs = [new_job(tenant=t, pool=2, type=3, priority=9, timeout_ms=50) for t in (1, 2)]
    await add_jobs(connection, *jobs)
    for job in jobs:
        record = await look(connection, job)
        assert record.state == State.QUEUED
        assert record[:5] == (job.id, job.tenant, 2, 3, 9)
        assert (record.epoch, record.attempts, record.deliveries) == (0, 0, 0)
        assert (record.timeout_ms, record.payload, record.finished_at) == (50, b"{}", None)


async def test_an_id_twice_is_refused_whole(connection: Connection) -> None:
    job = await add_job(connection)
    with pytest.raises(asyncpg.UniqueViolationError):
        await add_jobs(connection, new_job(), job)
    assert await connection.fetchval("SELECT count(*) FROM jobs") == 1


async def test_a_free_key_is_taken_and_a_taken_one_names_its_holder(
    connection: Connection,
) -> None:
    first, again, other = claim("k"), claim("k", b"changed"), claim("k2")
    assert await claim_keys(connection, SHARD, [first]) == {}
    assert await claim_keys(connection, SHARD, [again, other]) == {
        (1, "k"): KeyHolder(b"body", first.job)
    }


async def test_keys_of_tenants_are_apart(connection: Connection) -> None:
    assert await claim_keys(connection, SHARD, [claim("k", tenant=1)]) == {}
    assert await claim_keys(connection, SHARD, [claim("k", tenant=2)]) == {}


async def test_a_key_is_free_again_after_its_day(connection: Connection) -> None:
    first, second = claim("k"), claim("k", b"another day")
    await claim_keys(connection, SHARD, [first])
    life = await connection.fetchval("SELECT expires_at - now() FROM idempotency")
    assert abs(life - KEY_LIFE).total_seconds() < 5
    await connection.execute("UPDATE idempotency SET expires_at = now() - interval '1 ms'")
    assert await claim_keys(connection, SHARD, [second]) == {}
    assert await claim_keys(connection, SHARD, [claim("k")]) == {
        (1, "k"): KeyHolder(b"another day", second.job)
    }


async def test_jobs_are_written_with_the_keys_that_they_have_taken(connection: Connection) -> None:
    jobs = [new_job() for _ in range(4)]
    claims = [KeyClaim(TenantId(1), f"k{n}", b"body", job.id) for n, job in enumerate(jobs)]
    before = KeyClaim(TenantId(1), "k1", b"body", new_job().id)
    assert await claim_keys(connection, SHARD, [before]) == {}
    taken = await claim_and_insert(connection, SHARD, claims[::-1], by_itself(jobs))
    assert taken == {(1, "k1"): KeyHolder(b"body", before.job)}
    assert await ids_of(connection) == {job.id for job in jobs} - {jobs[1].id}


async def test_a_second_try_finds_what_the_first_has_written(connection: Connection) -> None:
    """Its answer was lost on the way: nothing is written twice, and its keys name its jobs."""
    jobs = [new_job() for _ in range(3)]
    claims = [KeyClaim(TenantId(1), f"k{n}", b"body", job.id) for n, job in enumerate(jobs)]
    assert await claim_and_insert(connection, SHARD, claims, by_itself(jobs)) == {}
    again = await claim_and_insert(connection, SHARD, claims, by_itself(jobs))
    assert {holder.job for holder in again.values()} == {job.id for job in jobs}
    assert await ids_of(connection) == {job.id for job in jobs}


async def test_of_two_that_write_at_once_one_does(
    connection: Connection, other_connection: Connection
) -> None:
    ours, theirs = new_job(), new_job()
    async with connection.transaction():
        claims = [KeyClaim(TenantId(1), "k", b"body", ours.id)]
        assert await claim_and_insert(connection, SHARD, claims, by_itself([ours])) == {}
        claims = [KeyClaim(TenantId(1), "k", b"body", theirs.id)]
        writing = claim_and_insert(other_connection, SHARD, claims, by_itself([theirs]))
        late = asyncio.create_task(writing)
        assert await is_blocked(connection, other_connection)
    assert await late == {(1, "k"): KeyHolder(b"body", ours.id)}
    assert await ids_of(connection) == {ours.id}


async def test_jobs_behind_one_key_are_written_together_or_not_at_all(
    connection: Connection,
) -> None:
    first, second = [[new_job() for _ in range(3)] for _ in range(2)]
    alone = new_job()
    for jobs, others in ((first, [alone]), (second, [])):
        key = [KeyClaim(TenantId(1), "batch", b"body", jobs[0].id)]
        behind = [(job, jobs[0].id) for job in jobs] + [(job, None) for job in others]
        taken = await claim_and_insert(connection, SHARD, key, behind)
    assert taken == {(1, "batch"): KeyHolder(b"body", first[0].id)}
    assert await ids_of(connection) == {job.id for job in [*first, alone]}


def by_itself(jobs: list[QueuedJob]) -> list[tuple[QueuedJob, JobId | None]]:
    """Each has a key of its own."""
    return [(job, job.id) for job in jobs]


async def ids_of(connection: Connection) -> set[str]:
    return {row["id"] for row in await connection.fetch("SELECT id::text FROM jobs")}


async def test_old_keys_are_forgotten_a_few_at_a_time(connection: Connection) -> None:
    await claim_keys(connection, SHARD, [claim(f"k{n}") for n in range(5)])
    assert await forget_keys(connection, SHARD, 10) == 0
    await connection.execute("UPDATE idempotency SET expires_at = now() - interval '1 ms'")
    assert [await forget_keys(connection, SHARD, 3) for _ in range(3)] == [3, 2, 0]


async def test_a_key_that_is_taken_anew_is_not_forgotten(
    connection: Connection, other_connection: Connection
) -> None:
    """It was old when the pruner saw it; whoever took it meanwhile has it for a day."""
    await claim_keys(connection, SHARD, [claim("k")])
    await connection.execute("UPDATE idempotency SET expires_at = now() - interval '1 ms'")
    async with connection.transaction():
        assert await claim_keys(connection, SHARD, [claim("k")]) == {}
        late = asyncio.create_task(forget_keys(other_connection, SHARD, 10))
        assert await is_blocked(connection, other_connection)
    assert await late == 0
    assert await connection.fetchval("SELECT count(*) FROM idempotency") == 1


async def test_of_two_claims_at_once_one_wins_and_the_other_sees_it(
    connection: Connection, other_connection: Connection
) -> None:
    ours, theirs = claim("k"), claim("k", b"other body")
    async with connection.transaction():
        assert await claim_keys(connection, SHARD, [ours]) == {}
        late = asyncio.create_task(claim_keys(other_connection, SHARD, [theirs]))
        assert await is_blocked(connection, other_connection)
    assert await late == {(1, "k"): KeyHolder(b"body", ours.job)}


async def test_a_claim_that_was_rolled_back_leaves_the_key_free(
    connection: Connection, other_connection: Connection
) -> None:
    transaction = connection.transaction()
    await transaction.start()
    await claim_keys(connection, SHARD, [claim("k")])
    late = asyncio.create_task(claim_keys(other_connection, SHARD, [claim("k")]))
    assert await is_blocked(connection, other_connection)
    await transaction.rollback()
    assert await late == {}


async def test_batches_with_the_same_keys_in_any_order_do_not_deadlock(
    connection: Connection, other_connection: Connection
) -> None:
    """Keys are taken in one order for all: who waits for the first holds none of the later."""
    async with connection.transaction():
        assert await claim_keys(connection, SHARD, [claim("k1")]) == {}
        late = asyncio.create_task(claim_keys(other_connection, SHARD, [claim("k2"), claim("k1")]))
        assert await is_blocked(connection, other_connection)
        assert await claim_keys(connection, SHARD, [claim("k2")]) == {}
    assert set(await late) == {(1, "k1"), (1, "k2")}
