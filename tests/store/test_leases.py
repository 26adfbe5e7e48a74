"""Leases and sessions: written only for jobs that are free to run, found again by a new owner."""

from __future__ import annotations

from msgspec.structs import replace
from tests.store.rows import SHARD, add_job, lease_for, look, new_job, own, schedule, start

from fairway.core.ids import LOWEST_JOB_ID
from fairway.core.job import NO_PAYLOAD
from fairway.core.lifecycle import State
from fairway.runtime.identity import session_key
from fairway.store.database import Connection
from fairway.store.leases import (
    forget_sessions,
    live_sessions,
    read_held,
    read_running,
    see_sessions,
    silent_sessions,
    write_leases,
)


async def test_a_lease_becomes_a_fact(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    lease = await start(connection, job, term)
    record = await look(connection, job)
    assert (record.state, record.epoch) == (State.RUNNING, lease.epoch)
    assert record.started_at is not None
    assert (record.attempts, record.deliveries) == (0, 0)


async def test_only_jobs_that_are_free_get_a_lease(connection: Connection) -> None:
    term = await own(connection)
    free, running, due = [await add_job(connection) for _ in range(3)]
    first = await start(connection, running, term)
    await schedule(connection, due, due_in_seconds=60)
    wanted = [lease_for(job, term) for job in (free, running, due, new_job())]
    wanted[1] = wanted[1]._replace(epoch=first.epoch + 1)
    assert await write_leases(connection, SHARD, term, wanted) == {free.id}
    assert (await look(connection, running)).epoch == first.epoch


async def test_an_epoch_that_is_not_new_gets_no_lease(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    lease = lease_for(job, term)
    await connection.execute("UPDATE jobs SET epoch = $2 WHERE id = $1", job.id, lease.epoch)
    assert await write_leases(connection, SHARD, term, [lease]) == set()
    newer = lease._replace(epoch=lease.epoch + 1)
    assert await write_leases(connection, SHARD, term, [newer]) == {job.id}


async def test_a_new_owner_finds_every_written_lease(connection: Connection) -> None:
    term = await own(connection)
    job, waiting = await add_job(connection, tenant=7, type=4), await add_job(connection)
    lease = await start(connection, job, term)
    await connection.execute("UPDATE jobs SET started_at = now() - interval '5 s' WHERE state = 2")
    (found,) = await read_running(connection, SHARD, LOWEST_JOB_ID, 10)
    assert found.job == replace(job, epoch=lease.epoch, payload=NO_PAYLOAD)
    assert (found.session, found.token) == (lease.session, lease.token)
    assert 5 <= found.running_seconds < 15
    assert (await look(connection, waiting)).state == State.QUEUED


async def test_written_leases_are_found_a_page_at_a_time(connection: Connection) -> None:
    term = await own(connection)
    jobs = sorted([await add_job(connection) for _ in range(5)])
    for job in jobs:
        await start(connection, job, term)
    after, pages = LOWEST_JOB_ID, []
    while page := await read_running(connection, SHARD, after, 2):
        pages.append([found.job.id for found in page])
        after = page[-1].job.id
    ids = [job.id for job in jobs]
    assert pages == [ids[:2], ids[2:4], ids[4:]]


async def test_the_store_tells_what_it_knows_of_leases_somebody_claims(
    connection: Connection,
) -> None:
    term = await own(connection)
    waiting, running, foreign = [await add_job(connection) for _ in range(3)]
    lease = await start(connection, running, term)
    asked = [(1, waiting.id), (1, running.id), (2, foreign.id), (1, new_job().id)]
    held = await read_held(connection, SHARD, asked)
    assert held.keys() == {waiting.id, running.id}
    assert held[waiting.id].stored == (State.QUEUED, 0, None)
    assert held[running.id].stored == (State.RUNNING, lease.epoch, lease.token)
    assert held[waiting.id].job == replace(waiting, payload=NO_PAYLOAD)
    whole = await read_held(connection, SHARD, asked, with_payloads=True)
    assert whole[waiting.id].job == waiting


async def test_sessions_are_heard_go_silent_and_are_forgotten(connection: Connection) -> None:
    loud, quiet = session_key(), session_key()
    await see_sessions(connection, SHARD, [(loud, "w1"), (quiet, "w2")])
    assert await live_sessions(connection, SHARD, 10) == {loud, quiet}
    assert await silent_sessions(connection, SHARD, 10) == {}
    await connection.execute("UPDATE sessions SET seen_at = now() - interval '30 s'")
    await see_sessions(connection, SHARD, [(loud, "w1")])
    assert await live_sessions(connection, SHARD, 10) == {loud}
    (silence,) = (await silent_sessions(connection, SHARD, 10)).values()
    assert 30 <= silence < 40
    await forget_sessions(connection, SHARD, [quiet])
    assert await connection.fetchval("SELECT count(*) FROM sessions") == 1


async def test_sessions_of_other_shards_are_not_ours(connection: Connection) -> None:
    await see_sessions(connection, 1, [(session_key(), "elsewhere")])
    assert await live_sessions(connection, SHARD, 10) == set()
