"""What becomes of a marked job is written with it, once; of any other, nothing is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from msgspec.structs import replace
from tests.store.rows import SHARD, add_job, lease_for, new_job, own, promote_all, start

from fairway.core.backlog.streams import key_of
from fairway.core.events.kinds import OF_JOBS
from fairway.core.ids import Epoch, JobId, TenantId, Term
from fairway.core.job import JobMarks, QueuedJob, with_events
from fairway.core.lifecycle import TRANSITIONS, State
from fairway.core.run.follow_ups import Children
from fairway.store import dead_letters, leases, outcomes, promotion, submissions
from fairway.store.connections.database import Connection, Database
from fairway.store.outcomes import Settlement, Success
from fairway.store.schema import partition_retirement
from fairway.store.schema.partitions import make_ahead, partition_at

TENANT = TenantId(1)
HOUR = timedelta(hours=1)
TAGGED = JobMarks(["mine"], None)


async def add_marked(
    connection: Connection, *jobs: QueuedJob, mark: JobMarks | None = None
) -> None:
    """Marked for events, and by what else it says: then it comes in by COPY."""
    marks = {str(job.id): with_events(mark) for job in jobs}
    await submissions.insert_jobs(connection, SHARD, jobs, None, marks)


async def inbox(connection: Connection) -> list[str]:
    rows = await connection.fetch("SELECT kind FROM event_inbox ORDER BY id")
    return [row["kind"] for row in rows]


async def taken(connection: Connection) -> list[str]:
    """What is in the inbox, and nothing is any more."""
    kinds = await inbox(connection)
    await connection.execute("DELETE FROM event_inbox")
    return kinds


def end(job: QueuedJob, epoch: int, state: State, **changes: object) -> Settlement:
    due = datetime.now(UTC) - timedelta(seconds=1) if state is State.SCHEDULED else None
    plain = Settlement(SHARD, TENANT, job.id, Epoch(epoch), state, 1, 1, due, 5, None)
    return plain._replace(**changes)  # type: ignore[arg-type]


async def test_a_life_with_a_retry(connection: Connection) -> None:
    term = Term(await own(connection))
    job = new_job()
    await add_marked(connection, job)
    lease = await start(connection, job, term)
    await outcomes.settle(connection, {SHARD: term}, [end(job, lease.epoch, State.SCHEDULED)])
    assert [one.id for one in await promote_all(connection, term)] == [job.id]
    again = await start(connection, replace(job, epoch=lease.epoch), term)
    success = Success(SHARD, TENANT, job.id, again.epoch, 42_500, b"1")
    for _ in range(2):  # an answer that was lost is asked for again
        await outcomes.record_successes(connection, {SHARD: term}, [success])
    rows = await connection.fetch("SELECT * FROM event_inbox ORDER BY id")
    assert [row["kind"] for row in rows] == [
        "job.accepted", "job.started", "job.retrying", "job.queued", "job.started", "job.succeeded",
    ]  # fmt: skip
    assert {(row["shard"], row["tenant"], str(row["job"]), row["type"]) for row in rows} == {
        (SHARD, TENANT, job.id, job.type)
    }
    assert [row["state"] for row in rows] == [1, 2, 0, 1, 2, 3]
    assert [row["attempt"] for row in rows] == [0, 1, 1, 1, 2, 2]
    assert [row["ran_us"] for row in rows] == [None, None, 5, None, None, 42_500]
    assert [row["due_at"] is not None for row in rows] == [False, False, True, False, False, False]


async def test_other_ends_and_a_replay(connection: Connection) -> None:
    term = Term(await own(connection))
    gone, late, dead, lost = [new_job() for _ in range(4)]
    await add_marked(connection, gone, late, dead, lost)
    await connection.execute(
        "UPDATE jobs SET execute_at = now(), not_after = now() - interval '1 s', on_late = 1"
        " WHERE id = $1",
        late.id,
    )
    assert await taken(connection) == ["job.accepted"] * 4
    assert await outcomes.cancel_waiting(connection, SHARD, term, TENANT, gone.id)
    too_late = [promotion.LateJob(late.id, key_of(late))]
    assert await promotion.expire(connection, SHARD, term, too_late, b"{}")
    assert await taken(connection) == ["job.cancelled", "job.expired"]
    lease = await start(connection, dead, term)
    last = end(dead, lease.epoch, State.DEAD, fingerprint=7)
    await outcomes.settle(connection, {SHARD: term}, [last])
    again = dead_letters.Replay(TENANT, [dead.id], None, b"{}")
    await dead_letters.replay(connection, SHARD, term, again)
    assert await taken(connection) == ["job.started", "job.dead", "job.replayed"]
    lease = await start(connection, lost, term)
    back = end(lost, lease.epoch, State.QUEUED, attempts=0, deliveries=1)
    await outcomes.settle(connection, {SHARD: term}, [back])
    assert await taken(connection) == ["job.started", "job.requeued"]


async def test_follow_ups_are_accepted_with_their_parents_end(connection: Connection) -> None:
    term = Term(await own(connection))
    job, child, plain = new_job(), new_job(), new_job()
    await add_marked(connection, job)
    lease = await start(connection, job, term)
    await taken(connection)
    born = Children(1, [child, plain], marks={child.id: with_events(None)})
    parent = outcomes.Parent(Success(SHARD, TENANT, job.id, lease.epoch, 1, b"1"), born)
    for _ in range(2):
        await outcomes.record_parents(connection, {SHARD: term}, [parent])
    assert sorted(await taken(connection)) == ["job.accepted", "job.succeeded"]


async def test_an_event_is_the_same_whoever_writes_it(connection: Connection) -> None:
    """The statement itself, for many at once; or the trigger, for whatever does not say so."""
    term = Term(await own(connection))
    plain, in_place, tagged, old = [new_job() for _ in range(4)]
    await add_marked(connection, plain, in_place)
    await add_marked(connection, tagged, old, mark=TAGGED)
    place = await connection.fetchval("SELECT ctid::text FROM jobs WHERE id = $1", in_place.id)
    epoch = lease_for(plain, term).epoch
    for job, where in ((plain, None), (in_place, place), (tagged, None)):
        success = Success(SHARD, TENANT, job.id, epoch, 1500, b"1", where)
        assert await outcomes.record_successes(connection, {SHARD: term}, [success]) == set()
    await connection.execute(  # as a server of the version before does it
        "UPDATE jobs SET state = 3, attempts = 1, epoch = $2, finished_at = now(), ran_us = 1500"
        " WHERE id = $1",
        old.id,
        epoch,
    )
    rows = await connection.fetch("SELECT * FROM event_inbox ORDER BY id")
    told: dict[str, list[tuple[object, ...]]] = {}
    for row in rows:
        facts = dict(row)
        told.setdefault(str(facts.pop("job")), []).append(
            tuple(value for name, value in facts.items() if name not in ("id", "at"))
        )
    assert len(told) == 4
    assert len(set(map(tuple, told.values()))) == 1, told
    assert [row[2] for row in told[plain.id]] == ["job.accepted", "job.succeeded"]


#: What a legal move announces, in the words of events.
KIND_OF = {
    "promoted": "job.queued", "cancelled": "job.cancelled", "expired": "job.expired",
    "started": "job.started", "succeeded": "job.succeeded", "retrying": "job.retrying",
    "died": "job.dead", "returned": "job.requeued", "replayed": "job.replayed",
}  # fmt: skip


async def test_every_legal_move_writes_one_event_of_its_kind(connection: Connection) -> None:
    job = new_job()
    await add_marked(connection, job)
    move = (
        "UPDATE jobs SET state = $2::int, epoch = epoch + $3, attempts = attempts + $4,"
        " execute_at = now(), finished_at = CASE WHEN $2::int >= 3 THEN now() END,"
        " session = CASE WHEN $2::int = 2 THEN gen_random_uuid() END,"
        " token = CASE WHEN $2::int = 2 THEN gen_random_uuid() END WHERE id = $1"
    )
    for (before, after), said in TRANSITIONS.items():
        await connection.execute(move, job.id, before.value, 1, 0)
        await taken(connection)
        attempts = 1 if said == "retrying" else 0
        await connection.execute(move, job.id, after.value, 1, attempts)
        assert await taken(connection) == [KIND_OF[said]], (before, after)
        await connection.execute(move, job.id, after.value, 0, 0)
        assert await taken(connection) == [], "written again, and the same"
    assert {*KIND_OF.values()} | {"job.accepted"} == {*OF_JOBS}


async def test_a_job_that_nobody_asked_about_writes_nothing(connection: Connection) -> None:
    term = Term(await own(connection))
    many = [new_job() for _ in range(submissions.FEW_JOBS + 1)]
    await submissions.insert_jobs(connection, SHARD, many)
    job = await add_job(connection)
    lease = await start(connection, job, term)
    await outcomes.settle(connection, {SHARD: term}, [end(job, lease.epoch, State.DEAD)])
    tagged, marked = new_job(), new_job()
    marks = {str(marked.id): with_events(None)}
    await submissions.insert_jobs(connection, SHARD, [tagged, marked], None, marks)
    assert await taken(connection) == ["job.accepted"]


async def test_an_event_is_there_when_its_change_is(
    connection: Connection, other_connection: Connection
) -> None:
    term, job = Term(await own(connection)), new_job()
    transaction = connection.transaction()
    await transaction.start()
    await add_marked(connection, job)
    await outcomes.cancel_waiting(connection, SHARD, term, TENANT, job.id)
    assert await inbox(connection) == ["job.accepted", "job.cancelled"]
    assert await inbox(other_connection) == []
    await transaction.rollback()
    assert await inbox(connection) == []
    await add_marked(connection, job)
    with pytest.raises(asyncpg.UniqueViolationError):
        await add_marked(connection, job)
    assert await inbox(other_connection) == ["job.accepted"]


async def test_leases_sent_again_start_nothing_anew(connection: Connection) -> None:
    term, job = Term(await own(connection)), new_job()
    await add_marked(connection, job)
    lease = await start(connection, job, term)
    assert await leases.write_leases(connection, {SHARD: term}, [lease]) == {job.id}
    assert await taken(connection) == ["job.accepted", "job.started"]


@pytest.mark.parametrize("mark", [None, TAGGED], ids=["plain", "tagged"])
async def test_jobs_that_are_carried_on_are_not_accepted_again(
    connection: Connection, owner: Connection, mark: JobMarks | None
) -> None:
    """Out of an old partition when it goes, and into a new one that came late."""
    old, soon = datetime.now(UTC) - timedelta(days=20), datetime.now(UTC) + timedelta(days=40)
    await make_ahead(owner, old)
    table = partition_at(old).name
    waiting, ended, missed = [new_job(at=old) for _ in range(3)]
    early = new_job(at=soon)
    await add_marked(connection, waiting, ended, missed, early, mark=mark)
    await connection.execute(
        "UPDATE jobs SET state = 3, finished_at = now() WHERE id = ANY($1::uuid[])",
        [ended.id, missed.id],
    )
    await taken(connection)
    keep_since = datetime.now(UTC) - HOUR
    late = partition_retirement.Late(SHARD, TENANT, ended.id, 1)
    assert await partition_retirement.detach(owner, table, [late]) == 2
    pages = range(await partition_retirement.page_count(owner, table))
    assert await partition_retirement.carry_missed(owner, table, pages, keep_since) == 1
    await partition_retirement.drop(owner, table)
    assert partition_at(soon).name in await make_ahead(owner, soon)
    homes = await connection.fetch("SELECT DISTINCT tableoid::regclass::text AS name FROM jobs")
    assert {row["name"] for row in homes} == {"jobs_carried", partition_at(soon).name}
    assert await inbox(connection) == []
    await cancel(connection, [waiting.id])
    assert await taken(connection) == ["job.cancelled"], "and is heard of where it is now"


async def cancel(connection: Connection, ids: Sequence[JobId]) -> None:
    term = Term(await own(connection))
    assert await outcomes.cancel_many(connection, SHARD, term, TENANT, list(ids))


async def test_a_tenants_own_request_writes_its_event_and_no_other(
    database: Database, connection: Connection
) -> None:
    ours, theirs = new_job(tenant=TENANT), new_job(tenant=TenantId(2))
    await add_marked(connection, ours, theirs)
    await taken(connection)
    async with database.quick(TENANT) as asked:
        await asked.execute("UPDATE jobs SET state = 5, finished_at = now()")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await asked.execute(
                "INSERT INTO event_inbox (shard, tenant, kind) VALUES (0, 2, 'job.dead')"
            )
    rows = await connection.fetch("SELECT kind, job::text AS job FROM event_inbox")
    assert [tuple(row) for row in rows] == [("job.cancelled", ours.id)]
