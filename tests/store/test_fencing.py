"""Fencing: an owner that was replaced can write nothing, however late its statement arrives.

Every statement that an owner writes with is listed once, in WRITES; each is tried after a
take-over, and again while it was already waiting for the take-over to commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from tests.laws.source import QUERIES
from tests.store.rows import (
    SHARD,
    add_job,
    is_blocked,
    lease_for,
    new_job,
    own,
    promote_all,
    schedule,
    start,
)

from fairway.core.backlog.streams import key_of
from fairway.core.bulk import BulkAction, BulkFilter
from fairway.core.events.event import NewEvent
from fairway.core.ids import LOWEST_JOB_ID, Epoch, JobId, PoolId, TenantId, Term, unix_ms_of
from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.core.run.follow_ups import Children
from fairway.core.webhooks.webhook import WebhookKey
from fairway.runtime.random_ids import session_key
from fairway.store import (
    bulk_actions,
    dead_letters,
    fair_share,
    leadership,
    leases,
    outbox,
    outcomes,
    promotion,
    schedules,
    submissions,
)
from fairway.store.bulk_actions import NewAction, Step
from fairway.store.connections.database import Connection, fetch
from fairway.store.events import inbox
from fairway.store.events.log import add_notices
from fairway.store.fair_share import Debt
from fairway.store.outcomes import Settlement, Success
from fairway.store.promotion import LateJob
from fairway.store.regions import held_jobs
from fairway.store.registry import tenant_moves
from fairway.store.sql import load
from fairway.store.statements import moved_tables
from fairway.store.webhooks import deliveries
from fairway.store.webhooks.deliveries import NewDelivery

Write = Callable[[Connection, Term, "Scene"], Coroutine[Any, Any, Any]]
HIGHEST = "ffffffff-ffff-ffff-ffff-ffffffffffff"


class Scene(NamedTuple):
    """What an owner of term `term` had going."""

    term: Term
    queued: QueuedJob
    place: str  # of the queued job's row
    running: QueuedJob
    epoch: int  # of the running job's lease
    due: QueuedJob
    late: QueuedJob  # queued, and past its last moment
    dead: QueuedJob
    action: BulkAction  # on dead letters
    committed: str  # a job that waits in the outbox


async def succeed(connection: Connection, term: Term, scene: Scene) -> Any:
    done = [
        Success(SHARD, TenantId(1), scene.running.id, Epoch(scene.epoch), 1, b"1"),
        Success(SHARD, TenantId(1), scene.queued.id, lease_for(scene.queued, term).epoch, 1, b"1"),
    ]
    return len(done) - len(await outcomes.record_successes(connection, {SHARD: term}, done))


async def succeed_in_place(connection: Connection, term: Term, scene: Scene) -> Any:
    epoch = lease_for(scene.queued, term).epoch
    done = [Success(SHARD, TenantId(1), scene.queued.id, epoch, 1, b"1", scene.place)]
    return not await outcomes.record_successes(connection, {SHARD: term}, done)


async def start_others(connection: Connection, term: Term, scene: Scene) -> Any:
    success = Success(SHARD, TenantId(1), scene.running.id, Epoch(scene.epoch), 1, b"1")
    at_ms = unix_ms_of(scene.running.id)
    parent = outcomes.Parent(success, Children(at_ms, [new_job()]))
    return 1 - len(await outcomes.record_parents(connection, {SHARD: term}, [parent]))


async def settle(connection: Connection, term: Term, scene: Scene) -> Any:
    job = scene.running
    end = Settlement(
        SHARD, TenantId(1), job.id, Epoch(scene.epoch), State.DEAD, 1, 1, None, 1, None
    )
    return 1 - len(await outcomes.settle(connection, {SHARD: term}, [end]))


async def end_refused(connection: Connection, term: Term, scene: Scene) -> Any:
    end = outcomes.RefusedEnd(SHARD, TenantId(1), scene.running.id, Epoch(scene.epoch), b"{}", 7)
    return 1 - len(await outcomes.end_refused(connection, {SHARD: term}, [end]))


async def write_leases(connection: Connection, term: Term, scene: Scene) -> Any:
    return await leases.write_leases(connection, {SHARD: term}, [lease_for(scene.queued, term)])


async def promote(connection: Connection, term: Term, scene: Scene) -> Any:
    return await promote_all(connection, term)


async def reschedule(connection: Connection, term: Term, scene: Scene) -> Any:
    moment = datetime.now(UTC) + timedelta(hours=1)
    return await promotion.reschedule(connection, SHARD, term, TenantId(1), scene.due.id, moment)


async def expire(connection: Connection, term: Term, scene: Scene) -> Any:
    late = [LateJob(scene.late.id, key_of(scene.late))]
    return await promotion.expire(connection, SHARD, term, late, b"{}")


async def cancel_queued(connection: Connection, term: Term, scene: Scene) -> Any:
    return await outcomes.cancel_waiting(connection, SHARD, term, TenantId(1), scene.queued.id)


async def cancel_due(connection: Connection, term: Term, scene: Scene) -> Any:
    return await outcomes.cancel_waiting(connection, SHARD, term, TenantId(1), scene.due.id)


async def cancel_many(connection: Connection, term: Term, scene: Scene) -> Any:
    ids = [scene.queued.id, scene.due.id]
    return await outcomes.cancel_many(connection, SHARD, term, TenantId(1), ids)


async def replay(connection: Connection, term: Term, scene: Scene) -> Any:
    wanted = dead_letters.Replay(TenantId(1), [scene.dead.id], None, b"{}")
    return await dead_letters.replay(connection, SHARD, term, wanted)


async def discard(connection: Connection, term: Term, scene: Scene) -> Any:
    return await dead_letters.discard(connection, SHARD, term, TenantId(1), [scene.dead.id])


async def move_action(connection: Connection, term: Term, scene: Scene) -> Any:
    step = Step(1, 0, 0, 0, scene.dead.id, is_over=True)
    return await bulk_actions.move(connection, SHARD, term, scene.action, step)


async def fail_action(connection: Connection, term: Term, scene: Scene) -> Any:
    running = bulk_actions.RunningAction(TenantId(1), scene.action.id, "discard", 1)
    return await bulk_actions.fail(connection, SHARD, term, running, "why")


async def fail_if_forgotten(connection: Connection, term: Term, scene: Scene) -> Any:
    running = bulk_actions.RunningAction(TenantId(1), scene.action.id, "discard", 1)
    return await bulk_actions.fail(connection, SHARD, term, running, "why", if_forgotten=True)


async def owe(connection: Connection, term: Term, scene: Scene) -> Any:
    await fair_share.write_debts(connection, SHARD, term, [Debt(PoolId(1), TenantId(7), 5)])
    return Debt(PoolId(1), TenantId(7), 5) in await fair_share.read_debts(connection, [SHARD])


async def pay(connection: Connection, term: Term, scene: Scene) -> Any:
    await fair_share.write_debts(connection, SHARD, term, [Debt(PoolId(1), TenantId(1), 0)])
    return not await fair_share.read_debts(connection, [SHARD])


async def tick(connection: Connection, term: Term, scene: Scene) -> Any:
    """What a schedule fires is written while the term is held."""
    async with connection.transaction():
        if now := await schedules.hold_shard(connection, SHARD, term):
            await submissions.insert_jobs(connection, SHARD, [new_job()])
    return now


async def take_committed(connection: Connection, term: Term, scene: Scene) -> Any:
    ids = [JobId(scene.committed)]
    return await outbox.take_waiting(connection, SHARD, term, TenantId(1), ids)


async def put_events_in_order(connection: Connection, term: Term, scene: Scene) -> Any:
    return await inbox.move_events(connection, SHARD, term, [TenantId(1)], 10)


async def begin_log(connection: Connection, term: Term, scene: Scene) -> Any:
    return await inbox.begin_logs(connection, SHARD, term, [TenantId(9)])


async def write_deliveries_down(connection: Connection, term: Term, scene: Scene) -> Any:
    key = WebhookKey(SHARD, TenantId(1), scene.queued.id)
    async with connection.transaction():
        if await deliveries.hold_term(connection, SHARD, term) is None:
            return False
        await deliveries.write_deliveries(connection, key, [NewDelivery(1, "job.late", b"{}")])
    return True


async def hold_job(connection: Connection, term: Term, scene: Scene) -> Any:
    return await held_jobs.hold_jobs(connection, SHARD, term, TenantId(1), [scene.queued.id])


async def hold_schedule(connection: Connection, term: Term, scene: Scene) -> Any:
    return await held_jobs.hold_schedules(connection, SHARD, term, TenantId(1), 10)


#: These ask for the term of another thing, or for the name by which the store knows the owner: what
#: they write is the server's own, whoever owns the shard.
OF_NO_SHARD = {
    "follow_directory",
    "hold_directory",
    "directory_pulled",
    "see_sessions",
    "silent_sessions",
    "forget_sessions",
}

#: Of a tenant's move to another shard; all but the first are tried apart.
OF_MOVES = {
    "hold",
    *(f"move_whole_{table}" for table in moved_tables.WHOLE),
    *(f"move_{table}" for table in tenant_moves.ALL_PARTS),
}

#: By the statement that each is about.
WRITES: dict[str, list[Write]] = {
    "record_successes": [succeed],
    "record_successes_in_place": [succeed_in_place],
    "record_parents": [start_others],
    "settle": [settle],
    "end_refused": [end_refused],
    "write_leases": [write_leases],
    "promote_due": [promote],
    "reschedule": [reschedule],
    "expire": [expire],
    "cancel_waiting": [cancel_queued, cancel_due],
    "cancel_many": [cancel_many],
    "replay": [replay],
    "discard": [discard],
    "move_action": [move_action],
    "fail_action": [fail_action, fail_if_forgotten],
    "write_debts": [owe],
    "forget_debts": [pay],
    "hold_shard": [tick],
    "take_waiting": [take_committed],
    "move_events": [put_events_in_order],
    "begin_logs": [begin_log],
    "hold_term": [write_deliveries_down],
    "hold_jobs": [hold_job],
    "hold_schedules": [hold_schedule],
}
each_write = pytest.mark.parametrize(
    "write",
    [write for writes in WRITES.values() for write in writes],
    ids=lambda write: write.__name__,
)


def test_every_statement_that_asks_for_the_term_is_tried() -> None:
    fenced = {
        name
        for path in QUERIES.glob("*.sql")
        for name, statement in load(path.name).items()
        if "term" in statement.parameters
        or ({"owned", "terms"} <= set(statement.parameters) and name != "terms_in_force")
    }
    assert fenced - OF_NO_SHARD - OF_MOVES == set(WRITES)
    assert fenced >= OF_MOVES


@pytest.fixture
async def scene(connection: Connection) -> Scene:
    term = await own(connection, "first")
    queued, running, due, late, dead = [await add_job(connection) for _ in range(5)]
    lease = await start(connection, running, term)
    await schedule(connection, due, due_in_seconds=-1)
    await connection.execute(
        "UPDATE jobs SET execute_at = now() - interval '1 h', not_after = now() - interval '1 s',"
        " on_late = 1 WHERE id = $1",
        late.id,
    )
    await connection.execute(
        "UPDATE jobs SET state = 4, fingerprint = 7, finished_at = now() WHERE id = $1", dead.id
    )
    await fair_share.write_debts(connection, SHARD, Term(term), [Debt(PoolId(1), TenantId(1), 5)])
    place = await connection.fetchval("SELECT ctid::text FROM jobs WHERE id = $1", queued.id)
    action = await act(connection)
    committed = new_job().id
    await connection.execute(
        "INSERT INTO outbox (shard, tenant, id, request) VALUES ($1, 1, $2, '{}')", SHARD, committed
    )
    await connection.execute(
        "INSERT INTO job_types (id, name) VALUES ($1, 'of-this-scene') ON CONFLICT DO NOTHING",
        queued.type,
    )
    await connection.execute(
        "INSERT INTO schedules (shard, tenant, name, every_ms, zone, type, pool, priority, payload,"
        " jitter_ms, starts_at, overlap, catch_up, window_ms, paused, source, handled_at)"
        " SELECT $1, 1, 'hourly', 3600000, 'UTC', job_types.id, pools.number, 5, '{}', 0, now(), 0,"
        " 0, 0, false, '', now() FROM job_types, pools LIMIT 1",
        SHARD,
    )
    await add_notices(connection, [NewEvent(TenantId(1), "job.late", "work", "late")])
    return Scene(
        Term(term), queued, place, running, lease.epoch, due, late, dead, action, committed
    )


async def act(connection: Connection) -> BulkAction:
    wanted = BulkFilter(before=HIGHEST, since=LOWEST_JOB_ID)
    begun = NewAction(session_key(), "discard", wanted, None, 10, 1)
    await bulk_actions.begin(connection, SHARD, TenantId(1), begun)
    action = await bulk_actions.read(connection, SHARD, TenantId(1), begun.id)
    assert action is not None
    return action


async def rows(connection: Connection, scene: Scene) -> list[Any]:
    """All that an owner writes."""
    tables = ("jobs", "fair_share", "bulk_actions", "outbox", "event_inbox", "event_heads",
              "webhook_deliveries", "held_jobs")  # fmt: skip
    found = [await connection.fetch(f"SELECT * FROM {name} ORDER BY {name}") for name in tables]
    return [tuple(row) for table in found for row in table]


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
async def test_a_take_over_comes_after_the_old_owners_last_statement(
    connection: Connection, other_connection: Connection, scene: Scene, write: Write
) -> None:
    """Until that is over the shard is left out, and nobody waits for it: its next claim has it."""
    await connection.execute("UPDATE shards SET expires_at = '-infinity'")
    before = await rows(connection, scene)
    async with connection.transaction():
        assert await write(connection, scene.term, scene)
        assert await leadership.claim_shards(other_connection, "second", "", 60) == {}
    taken = await leadership.claim_shards(other_connection, "second", "", 60)
    assert taken[SHARD].term == scene.term + 1
    now = await rows(connection, scene)
    assert now != before
    await write(connection, scene.term, scene)
    assert await rows(connection, scene) == now


@each_write
async def test_a_renewal_does_not_wait_for_the_owners_last_statement(
    connection: Connection, other_connection: Connection, scene: Scene, write: Write
) -> None:
    await other_connection.execute("SET lock_timeout = '2s'")
    async with connection.transaction():
        assert await write(connection, scene.term, scene)
        held = {SHARD: scene.term}
        assert await leadership.renew_shards(other_connection, held, 60) == {SHARD: True}


async def test_a_term_that_ran_out_unclaimed_still_writes(
    connection: Connection, scene: Scene
) -> None:
    """The term fences, not the time: nobody else may have granted anything yet."""
    await connection.execute("UPDATE shards SET expires_at = '-infinity'")
    assert await succeed(connection, scene.term, scene) == 2


@pytest.mark.parametrize("name", sorted(OF_MOVES - {"hold"}))
async def test_a_replaced_owner_moves_nothing(
    connection: Connection, scene: Scene, name: str
) -> None:
    statement = load("tenant_moves.sql")[name]
    after = tenant_moves.ALL_PARTS.get(name.removeprefix("move_"), "")
    way: dict[str, Any] = {
        "from_shard": SHARD,
        "to_shard": 1,
        "tenant": 1,
        "held": SHARD,
        "limit": 9,
    }
    way["after"] = after
    asked = {key: value for key, value in way.items() if key in statement.parameters}
    before = await rows(connection, scene)
    (row,) = await fetch(connection, statement, term=scene.term - 1, **asked)
    assert row["moved"] == 0
    assert await rows(connection, scene) == before
    if name in ("move_jobs", "move_bulk_actions"):
        (row,) = await fetch(connection, statement, term=scene.term, **asked)
        assert row["moved"] > 0
