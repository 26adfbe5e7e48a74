"""Leases and sessions: written only for jobs that are free to run, found again by a new owner."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.store.rows import SHARD, add_job, lease_for, look, new_job, own, schedule, start

from fairway.core.ids import LOWEST_JOB_ID, Epoch, ShardId, TenantId, Term
from fairway.core.job import NO_PAYLOAD
from fairway.core.lifecycle import State
from fairway.runtime.random_ids import session_key
from fairway.store import leases
from fairway.store.connections.database import Connection
from fairway.store.leadership import Heartbeat, beat, leave
from fairway.store.leases import (
    LiveSession,
    NamedJob,
    Origin,
    SessionRow,
    forget_sessions,
    live_sessions,
    read_held,
    read_running,
    see_sessions,
    silent_sessions,
    whose_sessions,
    write_leases,
)
from fairway.store.registry.tenants import StoredKey, add_key


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
    wanted[1] = wanted[1]._replace(epoch=Epoch(first.epoch + 1))
    assert await write_leases(connection, {SHARD: Term(term)}, wanted) == {free.id}
    assert (await look(connection, running)).epoch == first.epoch


async def test_an_epoch_that_is_not_new_gets_no_lease(connection: Connection) -> None:
    term, job = await own(connection), await add_job(connection)
    lease = lease_for(job, term)
    await connection.execute("UPDATE jobs SET epoch = $2 WHERE id = $1", job.id, lease.epoch)
    assert await write_leases(connection, {SHARD: Term(term)}, [lease]) == set()
    newer = lease._replace(epoch=Epoch(lease.epoch + 1))
    assert await write_leases(connection, {SHARD: Term(term)}, [newer]) == {job.id}


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
    asked = [
        NamedJob(SHARD, waiting.tenant, waiting.id),
        NamedJob(SHARD, running.tenant, running.id),
        NamedJob(SHARD, TenantId(2), foreign.id),
        NamedJob(SHARD, TenantId(1), new_job().id),
        NamedJob(ShardId(SHARD + 1), waiting.tenant, foreign.id),
    ]
    held = await read_held(connection, asked)
    assert held.keys() == {waiting.id, running.id}
    assert held[waiting.id].stored == (State.QUEUED, 0, None)
    assert held[running.id].stored == (State.RUNNING, lease.epoch, lease.token)
    assert held[waiting.id].job == replace(waiting, payload=NO_PAYLOAD)
    whole = await read_held(connection, asked, with_payloads=True)
    assert whole[waiting.id].job == waiting


async def test_sessions_are_heard_go_silent_and_are_forgotten(connection: Connection) -> None:
    terms = {SHARD: Term(await own(connection))}
    loud, quiet = session_key(), session_key()
    await see_sessions(connection, terms, [SessionRow(loud, "w1"), SessionRow(quiet, "w2")])
    assert await live_sessions(connection, SHARD, "", 10) == {LiveSession(loud), LiveSession(quiet)}
    assert await silent_sessions(connection, terms, 10) == {}
    await connection.execute("UPDATE worker_sessions SET seen_at = now() - interval '30 s'")
    await see_sessions(connection, terms, [SessionRow(loud, "w1")])
    assert await live_sessions(connection, SHARD, "", 10) == {LiveSession(loud)}
    silent = await silent_sessions(connection, terms, 10)
    assert silent.keys() == {quiet}
    assert 30 <= silent[quiet] < 40
    await forget_sessions(connection, terms, [quiet])
    assert await connection.fetchval("SELECT count(*) FROM worker_sessions") == 1


async def test_sessions_are_of_the_server_that_heard_them(connection: Connection) -> None:
    """Another's are nobody's to judge; of one that is gone, whoever takes over waits for them."""
    terms = {SHARD: Term(await own(connection))}
    await connection.execute("INSERT INTO shards (shard, term, owner) VALUES (1, 3, 'other')")
    theirs, lost_term = session_key(), {ShardId(1): Term(2)}
    row = SessionRow(theirs, "elsewhere")
    assert not await see_sessions(connection, lost_term, [row])
    assert await see_sessions(connection, {ShardId(1): Term(3)}, [row])
    await beat(
        connection,
        Heartbeat(
            "other", "", owns_shards=True, is_leaving=False,
            term_seconds=60, settle_seconds=1, late_seconds=1,
        ),
    )  # fmt: skip
    assert await live_sessions(connection, SHARD, "", 10) == set()
    assert await live_sessions(connection, SHARD, "other", 10) == {LiveSession(theirs)}
    await leave(connection, "other")
    assert await live_sessions(connection, SHARD, "", 10) == {LiveSession(theirs)}
    await connection.execute("UPDATE worker_sessions SET seen_at = now() - interval '30 s'")
    assert await silent_sessions(connection, terms, 10) == {}
    await forget_sessions(connection, terms, [theirs])
    assert await connection.fetchval("SELECT count(*) FROM worker_sessions") == 1


async def test_what_a_server_of_the_build_before_wrote_is_read(connection: Connection) -> None:
    session = session_key()
    await connection.execute(
        "INSERT INTO sessions (shard, session, worker, seen_at, opener)"
        " VALUES ($1, $2, 'w', now(), 'a')", SHARD, session,
    )  # fmt: skip
    assert await live_sessions(connection, SHARD, "", 10) == {LiveSession(session)}
    found = await whose_sessions(connection, SHARD, [session])
    assert found == {session: Origin("w", None, "a", False)}
    assert await whose_sessions(connection, ShardId(1), [session]) == {}


# -- whose a session is ----------------------------------------------------------------------------


async def test_whose_a_session_is_is_found_again(connection: Connection) -> None:
    terms = {SHARD: Term(await own(connection))}
    own_worker, shared, unknown = [session_key() for _ in range(3)]
    rows = [
        SessionRow(own_worker, "w1", TenantId(7), "a"), SessionRow(shared, "w2", None, "b"),
        SessionRow(unknown, "w3"),
    ]  # fmt: skip
    await see_sessions(connection, terms, rows)
    asked = [own_worker, shared, unknown, session_key()]
    found = {
        own_worker: Origin("w1", TenantId(7), "a", False),
        shared: Origin("w2", None, "b", False),
    }
    assert await whose_sessions(connection, SHARD, asked) == found


async def test_who_does_not_know_whose_a_session_is_leaves_it_as_it_was(
    connection: Connection,
) -> None:
    """A row of an older server, and one that a new owner found before its worker spoke."""
    terms = {SHARD: Term(await own(connection))}
    session = session_key()
    await see_sessions(connection, terms, [SessionRow(session, "w")])
    await see_sessions(connection, terms, [SessionRow(session, "w", TenantId(7), "a")])
    await see_sessions(connection, terms, [SessionRow(session, "")])
    whose = await whose_sessions(connection, SHARD, [session])
    assert whose == {session: Origin("w", TenantId(7), "a", False)}
    await see_sessions(connection, terms, [SessionRow(session, "w", None, "b")])
    whose = await whose_sessions(connection, SHARD, [session])
    assert whose == {session: Origin("w", None, "b", False)}, "opened anew, by a shared worker's"


@pytest.mark.parametrize("end", ["revoked_at", "expires_at"])
async def test_a_key_that_is_not_valid_any_more_is_told_with_its_sessions(
    connection: Connection, end: str
) -> None:
    terms = {SHARD: Term(await own(connection))}
    for key in ("good", "ended"):
        await add_key(connection, StoredKey(key, "worker", None, b"-"))
    sessions = {key: session_key() for key in ("good", "ended", "nobody's")}
    rows = [SessionRow(session, "w", None, key) for key, session in sessions.items()]
    await see_sessions(connection, terms, rows)
    await connection.execute(f"UPDATE api_keys SET {end} = now() WHERE id = 'ended'")
    found = await whose_sessions(connection, SHARD, list(sessions.values()))
    assert {one.opener for one in found.values() if one.is_revoked} == {"ended"}


async def test_sessions_are_locked_in_one_order_by_all(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lease writers and the rescuer write them at once."""
    terms = {SHARD: Term(await own(connection))}
    sent: list[list[str]] = []

    async def sees(*_: object, sessions: list[str], **__: object) -> int:
        sent.append(sessions)
        return len(sessions)

    monkeypatch.setattr(leases, "fetch_value", sees)
    rows = [SessionRow(session_key(), "w", None, "b"), SessionRow(session_key(), "w")]
    for order in (rows, rows[::-1]):
        await see_sessions(connection, terms, order)
    assert sent[0] == sent[1]
