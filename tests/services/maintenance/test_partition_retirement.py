"""Old partitions go while jobs come in: nobody waits for it, and nothing is lost with them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from tests.postgres import connected
from tests.services.platform_room import until
from tests.store.rows import SHARD, add_jobs, is_blocked, look, new_job, own, start

from fairway.core.ids import TenantId, Term, lowest_id_at
from fairway.core.lifecycle import State
from fairway.core.retention import Load
from fairway.runtime.clock import SystemClock
from fairway.services.maintenance.partition_retirement import NOT_NOW_SECONDS, Retirement
from fairway.store import outcomes, submissions
from fairway.store.connections.database import Connection, Database
from fairway.store.schema import partition_retirement as retirement
from fairway.store.schema import partitions


@pytest.fixture
def connection(owner: Connection) -> Connection:
    """Tables are changed by who owns them."""
    return owner


NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=20)
KEEP_SINCE = NOW - timedelta(days=7)
TABLE = partitions.partition_at(OLD).name
MANY = 150_000
SLOWEST_SECONDS = 1.0  # of a submission; it was as long as the whole step before

FINISHED = {"state": 3, "execute_at": None, "finished_at": OLD}
LATELY = FINISHED | {"finished_at": NOW - timedelta(days=1)}
NEXT_YEAR = {"state": 0, "execute_at": NOW + timedelta(days=300), "finished_at": None}


async def fill(connection: Connection, count: int, row: Mapping[str, object]) -> None:
    """So many jobs of an old day, with a payload as jobs have one."""
    head = lowest_id_at(int(OLD.timestamp() * 1000))[:13]
    await connection.execute(
        "INSERT INTO jobs (shard, id, tenant, type, pool, priority, state, execute_at, finished_at,"
        " payload) SELECT 0, ($1 || '-7000-8' || substr(dice, 1, 3) || '-' || substr(dice, 4, 12))"
        "::uuid, 1, 1, 1, 5, $2::smallint, $3, $4, convert_to(repeat(dice, 12), 'UTF8')"
        " FROM (SELECT md5(random()::text) AS dice FROM generate_series(1, $5)) AS made",
        head, row["state"], row["execute_at"], row["finished_at"], count,
    )  # fmt: skip


async def count_at(connection: Connection, table: str) -> int:
    count: int = await connection.fetchval(f"SELECT count(*) FROM {table}")
    return count


@dataclass
class Slowest:
    seconds: float = 0.0
    written: int = 0


@asynccontextmanager
async def jobs_coming_in(database: Database) -> AsyncIterator[Slowest]:
    """Submissions one after the other, as long as this lasts."""
    slowest, is_over = Slowest(), asyncio.Event()

    async def submit() -> None:
        while not is_over.is_set():
            began = time.monotonic()
            async with database.hot() as connection:
                await submissions.insert_jobs(connection, SHARD, [new_job(tenant=2)])
            slowest.seconds = max(slowest.seconds, time.monotonic() - began)
            slowest.written += 1
            await asyncio.sleep(0.01)

    task = asyncio.create_task(submit())
    await until(lambda: slowest.written > 3)
    try:
        yield slowest
    finally:
        is_over.set()
        await task


async def rounds(database: Database, retire: Retirement | None = None) -> float | None:
    """Until nothing is under way, or a partition stays; answers what the last round said."""
    retire = retire or Retirement(database, SystemClock())
    async with asyncio.timeout(120):
        while True:
            rest = await retire.run_once(KEEP_SINCE)
            if rest is None or rest > 60:
                return rest


async def test_a_partition_in_which_many_jobs_wait_stays_and_holds_up_nobody(
    database: Database,
) -> None:
    async with database.upkeep() as connection:
        await partitions.make_ahead(connection, OLD)
        await fill(connection, MANY, NEXT_YEAR)
        await fill(connection, 3_000, FINISHED)
        await fill(connection, 10, LATELY)
    async with jobs_coming_in(database) as slowest:
        await rounds(database)
    assert slowest.seconds < SLOWEST_SECONDS
    async with database.upkeep() as connection:
        assert await count_at(connection, TABLE) == MANY + 10, "only what is old and done has gone"
        # When few are left, the partition goes like any other.
        await connection.execute(
            f"UPDATE {TABLE} SET state = 3, finished_at = $1"
            f" WHERE id <> (SELECT id FROM {TABLE} WHERE state = 0 LIMIT 1)",
            OLD,
        )  # fmt: skip
    await rounds(database)
    async with database.upkeep() as connection:
        assert TABLE not in {one.name for one in await partitions.existing(connection)}
        assert await count_at(connection, "jobs_carried") == 1


async def test_a_large_partition_goes_with_what_is_old_and_holds_up_nobody(
    database: Database,
) -> None:
    async with database.upkeep() as connection:
        await partitions.make_ahead(connection, OLD)
        await fill(connection, MANY // 3, FINISHED)
        await fill(connection, 7, LATELY)
        await fill(connection, 5, NEXT_YEAR)
    async with jobs_coming_in(database) as slowest:
        assert await rounds(database) is None
    assert slowest.seconds < SLOWEST_SECONDS
    async with database.upkeep() as connection:
        assert await connection.fetchval("SELECT to_regclass($1)", TABLE) is None
        assert await count_at(connection, "jobs_carried") == 12


async def test_a_row_that_ends_between_survey_and_detach_is_kept_also_after_a_crash(
    database: Database,
) -> None:
    async with database.upkeep() as connection:
        await partitions.make_ahead(connection, OLD)
        job, gone = new_job(at=OLD), new_job(at=OLD)
        await add_jobs(connection, job, gone)
        done = "UPDATE jobs SET state = 3, finished_at = $2 WHERE id = $1"
        await connection.execute(done, gone.id, OLD)
        await connection.execute(done, job.id, NOW)  # after the survey, which found nobody
        assert await retirement.detach(connection, TABLE, []) == 0
    assert await rounds(database) is None  # by another server, say
    async with database.upkeep() as connection:
        assert (await look(connection, job)).state == State.SUCCEEDED
        assert await count_at(connection, "jobs_carried") == 1
        assert await retirement.detached(connection) == []


async def test_who_surveyed_a_partition_that_went_otherwise_looks_for_what_was_missed(
    database: Database, database_url: str
) -> None:
    """Another server took it off, or our own detach was done and its answer lost."""
    retire, job = Retirement(database, SystemClock()), new_job(at=OLD)
    async with database.upkeep() as connection:
        await partitions.make_ahead(connection, OLD)
        await add_jobs(connection, job)
    async with connected(database_url) as reader, reader.transaction():
        await reader.execute("LOCK TABLE jobs IN ACCESS SHARE MODE")
        assert await retire.run_once(KEEP_SINCE) == NOT_NOW_SECONDS, "surveyed, and still there"
    async with database.upkeep() as connection:
        done = "UPDATE jobs SET state = 3, finished_at = $2 WHERE id = $1"
        await connection.execute(done, job.id, NOW)
        assert await retirement.detach(connection, TABLE, []) == 0
    assert await rounds(database, retire) is None
    async with database.upkeep() as connection:
        assert (await look(connection, job)).state == State.SUCCEEDED


async def test_an_end_that_meets_the_detach_is_recorded_behind_it(
    connection: Connection, other_connection: Connection
) -> None:
    await partitions.make_ahead(connection, OLD)
    term = await own(connection)
    job = new_job(at=OLD)
    await add_jobs(connection, job)
    lease = await start(connection, job, term)
    success = outcomes.Success(SHARD, TenantId(1), job.id, lease.epoch, 1, b"1")
    async with other_connection.transaction():
        assert await retirement.detach(other_connection, TABLE, []) == 1
        end = asyncio.create_task(
            outcomes.record_successes(connection, {SHARD: Term(term)}, [success])
        )
        assert await is_blocked(other_connection, connection)
    assert await end == set(), "nothing was refused"
    assert (await look(connection, job)).state == State.SUCCEEDED


async def test_a_detach_that_would_wait_gives_up_at_once_and_comes_again(
    database: Database, database_url: str
) -> None:
    async with database.upkeep() as connection:
        await partitions.make_ahead(connection, OLD)
    retire = Retirement(database, SystemClock())
    async with connected(database_url) as reader:
        async with reader.transaction():
            await reader.execute("LOCK TABLE jobs IN ACCESS SHARE MODE")  # a long report
            async with jobs_coming_in(database) as slowest:
                rest = await retire.run_once(KEEP_SINCE)
        assert rest is not None
        assert rest >= 1
        assert slowest.seconds < SLOWEST_SECONDS
    assert await rounds(database, retire) is None
    async with database.upkeep() as connection:
        assert TABLE not in {one.name for one in await partitions.existing(connection)}


async def test_heavy_rows_are_few_by_bytes(database: Database) -> None:
    async with database.upkeep() as connection:
        await partitions.make_ahead(connection, OLD)
        heavy = [new_job(at=OLD, payload=b"x" * 60_000) for _ in range(300)]
        await add_jobs(connection, *heavy)
        assert not (await retirement.weigh_waiting(connection, TABLE)).is_small
    await rounds(database)
    async with database.upkeep() as connection:
        assert await count_at(connection, TABLE) == 300


@pytest.mark.parametrize("name", ["late_rows", "thin"])
async def test_a_walk_reads_the_pages_it_was_given(connection: Connection, name: str) -> None:
    await partitions.make_ahead(connection, OLD)
    await fill(connection, 500, FINISHED)
    plan = await connection.fetch(
        f"EXPLAIN SELECT FROM {TABLE} WHERE {retirement._PAGES} AND finished_at < $3",
        "(0,0)", "(1,0)", NOW,
    )  # fmt: skip
    assert "Tid Range Scan" in plan[0][0]
    step = getattr(retirement, name)
    found = await step(connection, TABLE, range(0), KEEP_SINCE)
    assert not found, "no page, no row"


async def test_a_table_that_cannot_be_retired_keeps_no_other_from_going(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with database.upkeep() as connection:
        await partitions.make_ahead(connection, OLD)
        names = [one.name for one in await partitions.existing(connection) if one.ends < KEEP_SINCE]
    weigh = retirement.weigh_waiting

    async def unreadable(connection: Connection, table: str) -> Load:
        if table == names[0]:
            raise asyncpg.DataCorruptedError("a page is damaged")
        return await weigh(connection, table)

    monkeypatch.setattr(retirement, "weigh_waiting", unreadable)
    retire = Retirement(database, SystemClock())
    for _ in range(4):
        assert await retire.run_once(KEEP_SINCE) is not None
    async with database.upkeep() as connection:
        left = {one.name for one in await partitions.existing(connection)}
        assert await retirement.detached(connection) == []
    assert left & set(names) == {names[0]}
