"""One statement for rows of several shards: each row is guarded by the term of its own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.store.rows import lease_for, new_job

from fairway.core.ids import Epoch, JobId, ShardId, TenantId, Term, shard_of
from fairway.core.job import JobMarks, QueuedJob
from fairway.core.lifecycle import State
from fairway.store import leadership, leases, outcomes, shard_looks, submissions
from fairway.store.connections import shard_terms
from fairway.store.connections.database import Connection
from fairway.store.outcomes import RefusedEnd, Settlement, Success
from fairway.store.registry.tenants import found_cluster
from fairway.store.submissions import KeyClaim, KeyHolder

COUNT = 4
SHARDS = [ShardId(shard) for shard in range(COUNT)]
LOST = ShardId(2)


@pytest.fixture
async def terms(connection: Connection) -> dict[ShardId, Term]:
    await found_cluster(connection, COUNT, "secret")
    taken = await leadership.claim_shards(connection, "me", "http://me", 60)
    return {shard: claim.term for shard, claim in taken.items()}


@pytest.fixture
async def jobs(connection: Connection) -> list[QueuedJob]:
    """Two in each shard."""
    made = [new_job(shard=shard, tenant=TenantId(shard + 4)) for shard in SHARDS * 2]
    await submissions.insert_jobs(connection, None, made)
    return made


async def lose(connection: Connection) -> None:
    await connection.execute("UPDATE shards SET term = term + 1 WHERE shard = $1", LOST)


async def states(connection: Connection) -> dict[str, tuple[int, int]]:
    rows = await connection.fetch("SELECT id::text AS id, shard, state FROM jobs")
    return {row["id"]: (row["shard"], row["state"]) for row in rows}


def success(job: QueuedJob, term: Term, place: str | None = None) -> Success:
    epoch = lease_for(job, term).epoch
    return Success(shard_of(job.id), job.tenant, job.id, epoch, 7, b"null", place)


def settlement(job: QueuedJob, term: Term) -> Settlement:
    epoch = lease_for(job, term).epoch
    return Settlement(shard_of(job.id), job.tenant, job.id, epoch, State.DEAD, 1, 1, None, 7, b"{}")


def refused(job: QueuedJob, term: Term) -> RefusedEnd:
    epoch = Epoch(lease_for(job, term).epoch)
    return RefusedEnd(shard_of(job.id), job.tenant, job.id, epoch, b"{}", 7)


@pytest.mark.parametrize(
    ("statement", "row", "state"),
    [
        (outcomes.record_successes, success, State.SUCCEEDED),
        (outcomes.settle, settlement, State.DEAD),
        (outcomes.end_refused, refused, State.DEAD),
    ],
)
async def test_rows_of_a_lost_shard_are_left_alone_and_the_others_are_written(
    connection: Connection,
    terms: dict[ShardId, Term],
    jobs: list[QueuedJob],
    statement: Any,
    row: Any,
    state: State,
) -> None:
    await lose(connection)
    lost = {job.id for job, shard in zip(jobs, SHARDS * 2, strict=True) if shard == LOST}
    done = [row(job, terms[SHARDS[0]]) for job in jobs]
    assert await statement(connection, terms, done) == lost
    assert await shard_terms.lost_of(connection, terms) == {LOST}
    found = await states(connection)
    assert {id_ for id_, (_, now) in found.items() if now == state.value} == found.keys() - lost
    kept = {shard: term for shard, term in terms.items() if shard != LOST}
    ours = [one for one in done if one.job not in lost]
    assert await statement(connection, kept, ours) == set(), "sent again, they count as written"


@pytest.mark.parametrize(
    ("statement", "row", "state"),
    [
        (outcomes.record_successes, success, State.SUCCEEDED),
        (outcomes.settle, settlement, State.DEAD),
        (outcomes.end_refused, refused, State.DEAD),
    ],
)
async def test_rows_of_moved_tenants_are_found_where_their_shard_is_said(
    connection: Connection,
    terms: dict[ShardId, Term],
    jobs: list[QueuedJob],
    statement: Any,
    row: Any,
    state: State,
) -> None:
    """Not where their ids say, and in one statement with those that are."""
    moved, home = jobs[1], ShardId(3)
    await connection.execute("UPDATE jobs SET shard = $1 WHERE id = $2", home, moved.id)
    ends = [row(job, terms[SHARDS[0]]) for job in jobs]
    assert await statement(connection, terms, ends) == {moved.id}
    ends[1] = ends[1]._replace(shard=home)
    assert await statement(connection, terms, ends) == set(), "sent again, they count as written"
    assert {now for _, now in (await states(connection)).values()} == {state.value}


async def test_a_lease_of_a_moved_tenant_is_written_where_its_shard_is_said(
    connection: Connection, terms: dict[ShardId, Term], jobs: list[QueuedJob]
) -> None:
    moved, home = jobs[1], ShardId(3)
    await connection.execute("UPDATE jobs SET shard = $1 WHERE id = $2", home, moved.id)
    rows = [lease_for(job, terms[SHARDS[0]]) for job in jobs]
    rows[1] = rows[1]._replace(shard=home)
    assert await leases.write_leases(connection, terms, rows) == {job.id for job in jobs}


async def test_rows_whose_place_is_known_are_guarded_by_their_own_shards_term(
    connection: Connection, terms: dict[ShardId, Term], jobs: list[QueuedJob]
) -> None:
    await lose(connection)
    rows = await connection.fetch("SELECT id::text AS id, ctid::text AS place FROM jobs")
    places = {row["id"]: row["place"] for row in rows}
    done = [success(job, terms[SHARDS[0]], places[job.id]) for job in jobs]
    missing = await outcomes.record_successes(connection, terms, done)
    assert {int(state) for _, state in (await states(connection)).values()} == {1, 3}
    assert len(missing) == 2
    booked = await connection.fetch("SELECT shard, tenant_ids FROM usage_log ORDER BY shard")
    expected = [(shard, [shard + 4] * 2) for shard in SHARDS if shard != LOST]
    assert [tuple(row) for row in booked] == expected, "to the books of each shard"


async def test_leases_of_a_lost_shard_are_not_written(
    connection: Connection, terms: dict[ShardId, Term], jobs: list[QueuedJob]
) -> None:
    await lose(connection)
    wanted = [lease_for(job, terms[SHARDS[0]]) for job in jobs]
    written = await leases.write_leases(connection, terms, wanted)
    found = await states(connection)
    assert written == {id_ for id_, (shard, _) in found.items() if shard != LOST}
    assert written == {id_ for id_, (_, state) in found.items() if state == State.RUNNING}


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("kind", ["plain", "traced", "marked", "keyed"])
async def test_jobs_of_one_group_go_to_the_shards_that_their_ids_name(
    connection: Connection, count: int, kind: str
) -> None:
    made = [
        new_job(shard=shard, tenant=TenantId(shard + 4), trace=b"t" if kind == "traced" else None)
        for shard in (SHARDS * count)[:count]
    ]
    claims = [KeyClaim(job.tenant, f"k{job.id}", b"h", JobId(job.id)) for job in made]
    if kind == "keyed":
        given = [(job, claim.job) for job, claim in zip(made, claims, strict=True)]
        for taken in ({}, {(one.tenant, one.key): KeyHolder(b"h", one.job) for one in claims}):
            assert await submissions.claim_and_insert(connection, None, claims, given) == taken
    else:
        marks = {str(made[0].id): JobMarks(None, None, False)} if kind == "marked" else None
        await submissions.insert_jobs(connection, None, made, None, marks, traced=kind == "traced")
    expected = {job.id: (shard, 1) for job, shard in zip(made, SHARDS * count, strict=False)}
    assert await states(connection) == expected


async def test_a_look_names_the_shards_with_something_to_do(
    connection: Connection, terms: dict[ShardId, Term], jobs: list[QueuedJob]
) -> None:
    assert await shard_looks.shards_with(connection, "queued", SHARDS) == SHARDS
    await connection.execute("UPDATE jobs SET state = 3, finished_at = now() WHERE shard <> 1")
    assert await shard_looks.shards_with(connection, "queued", SHARDS) == [1]
    assert await shard_looks.shards_with(connection, "queued", [ShardId(0)]) == []
    await connection.execute(
        "UPDATE jobs SET state = 0, finished_at = NULL, execute_at = now() WHERE shard = 0"
    )
    await connection.execute(
        "UPDATE jobs SET state = 0, finished_at = NULL, execute_at = now() + interval '90 s'"
        " WHERE shard = 3"
    )
    soon = await shard_looks.shards_due(connection, "scheduled", SHARDS)
    assert soon.due == [0]
    assert soon.seconds is not None
    assert 80 < soon.seconds <= 90
    assert await shard_looks.shards_due(connection, "ticking", SHARDS) == ([], None)
    seen = await shard_looks.look_at_all(connection, SHARDS)
    assert seen.shards_with("queued", SHARDS) == [1]
    assert seen.shards_with("queued", [ShardId(0)]) == seen.shards_with("with_outbox", SHARDS) == []
    assert seen.shards_due("scheduled", SHARDS).due == [0]
    assert seen.shards_due("scheduled", [ShardId(1)]) == ([], None)
    assert seen.shards_due("scheduled", [ShardId(3)]).seconds == pytest.approx(85, abs=5)
