"""Tenants' logs: positions without gaps, in one order for everybody, and gone when past keeping."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from tests.postgres import connected
from tests.store.events.test_job_events import add_marked
from tests.store.rows import SHARD, new_job, own

from fairway.core.events.event import Event, Fact, NewEvent
from fairway.core.ids import JobId, ShardId, TenantId, Term
from fairway.core.lifecycle import State
from fairway.store.connections.database import Connection, Database
from fairway.store.events.inbox import move_events, tenants_with_news
from fairway.store.events.log import CHUNK_EVENTS_MAX, add_notices, read_events, read_heads
from fairway.store.registry.tenants import found_cluster
from fairway.store.schema.log_partitions import drop_log_days, make_log_days

OURS, THEIRS, THIRD = TenantId(1), TenantId(2), TenantId(3)
NOW = datetime.now(UTC)
JOB = JobId("01980a5e-7c1b-7000-8000-04a2b1c3d4e5")


def notices(tenant: TenantId, count: int, start: int = 1) -> list[NewEvent]:
    return [NewEvent(tenant, "job.late", "work", f"{n}") for n in range(start, start + count)]


async def move(connection: Connection, term: int, *tenants: TenantId, each: int = 100) -> int:
    moved = await move_events(connection, SHARD, Term(term), tenants, each)
    return sum(one.last_position - one.first_position + 1 for one in moved)


async def positions(connection: Connection, after: int, limit: int) -> list[int]:
    page = await read_events(connection, SHARD, OURS, after, limit)
    return [event.position for event in page.events]


async def test_an_event_is_told_as_it_happened(connection: Connection) -> None:
    term = await own(connection)
    await connection.execute("INSERT INTO job_types (id, name) VALUES (1, 'email.send')")
    job = new_job()
    await add_marked(connection, job)
    said = 'It says "no", \\ and ü.'
    await add_notices(connection, [NewEvent(OURS, "checkpoint.lost", "other", said, JOB)])
    assert await move(connection, term, OURS) == 2
    page = await read_events(connection, SHARD, OURS, 0, 10)
    accepted, lost = page.events
    assert (page.trimmed_to, page.last) == (0, 2)
    facts: dict[str, Fact] = {"state": "queued", "attempt": 0, "pool": "short"}
    assert accepted == Event(1, accepted.at, "job.accepted", job.id, "email.send", facts)
    assert lost == Event(2, lost.at, "checkpoint.lost", JOB, "other", {"detail": said})
    assert abs(accepted.at - datetime.now(UTC)) < timedelta(minutes=1)
    assert await read_heads(connection, [(SHARD, OURS), (SHARD, THEIRS)]) == {OURS: 2}


async def test_states_have_their_names(connection: Connection) -> None:
    term = await own(connection)
    await connection.execute(
        "INSERT INTO event_inbox (shard, tenant, kind, state, ran_us, due_at)"
        " SELECT 0, 1, 'job.queued', n, 1500, '2026-01-31T12:00:00Z' FROM generate_series(0, 6) n"
    )
    await move(connection, term, OURS)
    page = await read_events(connection, SHARD, OURS, 0, 10)
    assert [event.data["state"] for event in page.events] == [state.label for state in State]
    assert page.events[0].data["ran_ms"] == 1.5
    assert page.events[0].data["due_at"] == "2026-01-31T12:00:00.000000Z"


async def test_pages_are_read_from_anywhere(connection: Connection) -> None:
    """Whatever the sizes of the chunks that they lie in."""
    term, total = await own(connection), 0
    for size in (1, 7, 2, 30, 1, 1, 13):
        await add_notices(connection, notices(OURS, size, total + 1))
        await move(connection, term, OURS)
        total += size
    everything = list(range(1, total + 1))
    for after in range(total + 2):
        for limit in (1, 3, 20, 100):
            assert await positions(connection, after, limit) == everything[after : after + limit]
    page = await read_events(connection, SHARD, OURS, 0, total)
    assert [event.data["detail"] for event in page.events] == [str(n) for n in everything]
    beyond = await read_events(connection, SHARD, OURS, 1 << 62, 1)
    assert beyond == ([], 0, total)


async def test_a_chunk_has_a_largest_size(connection: Connection) -> None:
    term = await own(connection)
    await add_notices(connection, notices(OURS, CHUNK_EVENTS_MAX + 5))
    assert await move(connection, term, OURS, each=10**6) == CHUNK_EVENTS_MAX
    assert await move(connection, term, OURS, each=10**6) == 5
    seam = CHUNK_EVENTS_MAX - 1
    assert await positions(connection, seam, 3) == [seam + 1, seam + 2, seam + 3]


async def test_shards_are_those_of_the_tenants(connection: Connection) -> None:
    await found_cluster(connection, 4, "secret")
    await add_notices(connection, [*notices(TenantId(6), 1), *notices(TenantId(9), 1)])
    rows = await connection.fetch("SELECT shard, tenant FROM event_inbox ORDER BY tenant")
    assert [tuple(row) for row in rows] == [(2, 6), (1, 9)]


async def test_tenants_take_turns(connection: Connection) -> None:
    term = await own(connection)
    await add_notices(connection, notices(OURS, 50) + notices(THEIRS, 1) + notices(THIRD, 2))
    before = TenantId(-1)
    assert await tenants_with_news(connection, SHARD, before, 2) == [OURS, THEIRS]
    assert await tenants_with_news(connection, SHARD, THEIRS, 2) == [THIRD]
    assert await tenants_with_news(connection, ShardId(1), before, 2) == []
    assert await move(connection, term, OURS, THEIRS, THIRD, each=5) == 8
    assert await read_heads(connection, [(SHARD, one) for one in (OURS, THEIRS, THIRD)]) == {
        OURS: 5, THEIRS: 1, THIRD: 2,
    }  # fmt: skip


async def test_old_days_go_and_readers_hear_how_far(
    connection: Connection, owner: Connection
) -> None:
    term = await own(connection)
    await make_log_days(owner, NOW - timedelta(days=10))
    for _ in range(2):
        await add_notices(connection, notices(OURS, 3))
        await move(connection, term, OURS)
    await owner.execute(
        "UPDATE event_log SET written_at = written_at - interval '10 days' WHERE last_position = 3"
    )
    assert (await read_events(connection, SHARD, OURS, 1, 2)).trimmed_to == 0
    gone = await drop_log_days(owner, "event_log", NOW - timedelta(hours=72))
    assert f"event_log_{NOW - timedelta(days=10):%Y%m%d}" in gone
    page = await read_events(connection, SHARD, OURS, 0, 2)
    assert ([one.position for one in page.events], page.trimmed_to, page.last) == ([4, 5], 3, 6)
    await drop_log_days(owner, "event_log", NOW + timedelta(days=30))
    assert await read_events(connection, SHARD, OURS, 0, 10) == ([], 6, 6)
    await make_log_days(owner, NOW)
    await add_notices(connection, notices(OURS, 1))
    await move(connection, term, OURS)
    assert await positions(connection, 0, 10) == [7], "numbers are never given again"


@pytest.mark.parametrize("missing", [5, 300])
async def test_a_hole_is_told_of_as_a_gap(
    connection: Connection, owner: Connection, missing: int
) -> None:
    """The clock was put back: later positions lay in an earlier day, which went first."""
    term, resumes = await own(connection), 3 + missing + 1
    await make_log_days(owner, NOW - timedelta(days=10))
    for count in (3, missing, 3):
        await add_notices(connection, notices(OURS, count))
        await move(connection, term, OURS, each=1000)
    for last, days in ((3, 8), (3 + missing, 10)):
        await owner.execute(
            f"UPDATE event_log SET written_at = written_at - interval '{days} days'"
            " WHERE last_position = $1",
            last,
        )
    await drop_log_days(owner, "event_log", NOW - timedelta(days=8, hours=12))
    page = await read_events(connection, SHARD, OURS, 0, 200)
    assert ([one.position for one in page.events], page.trimmed_to) == ([1, 2, 3], 0)
    for after in (3, 4, resumes - 1):
        page = await read_events(connection, SHARD, OURS, after, 2)
        assert [one.position for one in page.events] == [resumes, resumes + 1]
        assert page.trimmed_to == (0 if after == resumes - 1 else resumes - 1)
        assert page.last == resumes + 2


async def test_what_finds_no_day_stays_in_the_inbox(
    connection: Connection, owner: Connection
) -> None:
    term = await own(connection)
    await drop_log_days(owner, "event_log", NOW + timedelta(days=30))
    await add_notices(connection, notices(OURS, 2))
    with pytest.raises(Exception, match="no partition"):
        await move(connection, term, OURS)
    await make_log_days(owner, NOW)
    assert await move(connection, term, OURS) == 2
    assert await positions(connection, 0, 10) == [1, 2]


async def test_a_tenant_reads_its_own_log_alone(database: Database, connection: Connection) -> None:
    term = await own(connection)
    await add_notices(connection, notices(OURS, 2) + notices(THEIRS, 3))
    await move(connection, term, OURS, THEIRS)
    async with database.quick(THEIRS) as asked:
        assert (await read_events(asked, SHARD, THEIRS, 0, 10)).last == 3
        assert await read_events(asked, SHARD, OURS, 0, 10) == ([], 0, 0)
        assert await read_heads(asked, [(SHARD, OURS), (SHARD, THEIRS)]) == {THEIRS: 3}


class Reader:
    """Somebody who follows a log, and remembers what it saw."""

    def __init__(self, tenant: TenantId) -> None:
        self.tenant = tenant
        self.seen: list[Event] = []

    async def look(self, connection: Connection) -> None:
        page = await read_events(connection, SHARD, self.tenant, len(self.seen), 1000)
        expected = range(len(self.seen) + 1, len(self.seen) + len(page.events) + 1)
        assert [event.position for event in page.events] == [*expected], "a gap, or out of order"
        assert page.last == len(self.seen) + len(page.events)
        self.seen += page.events


class Bustle:
    """Writers that commit in any order, and two owners that take the shard from each other."""

    def __init__(self, dsn: str, term: int) -> None:
        self.dsn, self.terms, self.over, self.tries_of_old = dsn, [term], asyncio.Event(), 0
        self.readers = [Reader(tenant) for tenant in (OURS, THEIRS, THIRD)]
        self.tenants = [reader.tenant for reader in self.readers]

    async def write(self, seed: int) -> list[str]:
        dice, made = random.Random(seed), list[str]()
        async with connected(self.dsn) as writer:
            for _ in range(12):
                count = dice.randint(1, 4)
                jobs = [new_job(tenant=dice.choice(self.tenants)) for _ in range(count)]
                async with writer.transaction():
                    await add_marked(writer, *jobs)
                    await asyncio.sleep(dice.random() * 0.01)
                made += [job.id for job in jobs]
        return made

    async def sequence(self, place: int) -> None:
        """An owner that goes on under its own term, whether or not another has come."""
        async with connected(self.dsn) as mover:
            while not self.over.is_set():
                mine = [term for n, term in enumerate(self.terms) if n % 2 == place]
                if mine:
                    is_old = mine[-1] != self.terms[-1]
                    moved = await move(mover, mine[-1], *self.tenants, each=3)
                    assert not (is_old and moved), "an old owner wrote"
                    self.tries_of_old += is_old
                await asyncio.sleep(0.001)

    async def follow(self) -> None:
        async with connected(self.dsn) as eyes:
            while not self.over.is_set():
                for reader in self.readers:
                    await reader.look(eyes)

    async def change_owners(self) -> None:
        async with connected(self.dsn) as claimant:
            while not self.over.is_set():
                await asyncio.sleep(0.02)
                self.terms.append(await own(claimant, f"owner {len(self.terms)}"))


async def test_positions_are_consecutive_while_many_write_and_the_owner_changes(
    connection: Connection, database_url: str
) -> None:
    bustle = Bustle(database_url, await own(connection))
    others = [bustle.sequence(0), bustle.sequence(1), bustle.follow(), bustle.change_owners()]
    async with asyncio.TaskGroup() as group:
        for one in others:
            group.create_task(one)
        made = await asyncio.gather(*(bustle.write(seed) for seed in range(4)))
        bustle.over.set()
    while await move(connection, bustle.terms[-1], *bustle.tenants):
        pass
    for reader in bustle.readers:
        await reader.look(connection)
    seen = Counter(event.job for reader in bustle.readers for event in reader.seen)
    assert seen == Counter(job for some in made for job in some)
    assert bustle.tries_of_old
