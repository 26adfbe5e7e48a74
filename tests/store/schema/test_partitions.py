"""Time partitions: ready before they are needed, dropped when they are past, losing nobody."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.postgres import connected
from tests.store.rows import (
    add_job,
    look,
)

from fairway.core.job import QueuedJob
from fairway.core.lifecycle import State
from fairway.store.connections.database import Connection
from fairway.store.schema.log_partitions import make_log_days
from fairway.store.schema.partitions import (
    AHEAD,
    NOT_NOW,
    SPAN,
    existing,
    make_ahead,
    partition_at,
)


@pytest.fixture
def connection(owner: Connection) -> Connection:
    """Tables are changed by who owns them."""
    return owner


NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=20)


async def home_of(connection: Connection, job: QueuedJob) -> str:
    return str(
        await connection.fetchval("SELECT tableoid::regclass::text FROM jobs WHERE id = $1", job.id)
    )


@given(st.floats(1_600_000_000, 3_800_000_000))
def test_every_moment_has_one_partition(unix_seconds: float) -> None:
    moment = datetime.fromtimestamp(unix_seconds, UTC)
    partition = partition_at(moment)
    assert partition.begins <= moment < partition.ends
    assert partition_at(partition.ends - timedelta(microseconds=1)) == partition
    assert partition_at(partition.ends).begins == partition.ends


async def test_servers_that_start_together_make_them_once(database_url: str) -> None:
    """Each does as it can: what another is making at this moment is made, or comes later."""
    later = NOW + SPAN * 100

    async def make(connection: Connection) -> list[str]:
        try:
            return await make_ahead(connection, later) + await make_log_days(connection, later)
        except NOT_NOW:
            return []

    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(connected(database_url)) for _ in range(6)]
        made = await asyncio.gather(*map(make, servers))
        assert len({name for names in made for name in names}) == 3 * (AHEAD + 1)
        assert [await make(one) for one in servers] == [[]] * len(servers)


async def test_partitions_are_ready_before_they_are_needed(connection: Connection) -> None:
    later = NOW + SPAN * 10
    made = await make_ahead(connection, later)
    wanted = [partition_at(later + SPAN * offset).name for offset in range(-1, AHEAD)]
    assert made == wanted
    assert await make_ahead(connection, later) == []
    assert {partition.name for partition in await existing(connection)} >= set(wanted)
    job = await add_job(connection, at=later + SPAN * (AHEAD - 1))
    assert await home_of(connection, job) == wanted[-1]


async def test_a_new_partition_has_every_index(connection: Connection) -> None:
    name = partition_at(NOW).name
    rows = await connection.fetch("SELECT indexdef FROM pg_indexes WHERE tablename = $1", name)
    definitions = " ".join(row["indexdef"] for row in rows)
    assert len(rows) == 8
    for part in ("(state = 1)", "(state = 2)", "(state = 0)", "(state = 4)", "(shard, tenant, id)"):
        assert part in definitions


async def test_jobs_that_came_before_their_partition_move_into_it(connection: Connection) -> None:
    """A clock that ran ahead, or a pruner that was away for days, must not jam the making."""
    early = NOW + SPAN * 30
    job = await add_job(connection, at=early)
    assert await home_of(connection, job) == "jobs_carried"
    assert partition_at(early).name in await make_ahead(connection, early)
    assert await home_of(connection, job) == partition_at(early).name
    assert (await look(connection, job)).state == State.QUEUED


async def test_a_partition_is_made_without_reading_a_large_default_one_under_the_lock(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairway.store.schema.partitions.SMALL_BYTES", 0)
    await add_job(connection, at=OLD)  # carried on, say
    said: list[str] = []
    connection.add_log_listener(lambda _, message: said.append(str(message)))
    await connection.execute("SET client_min_messages = debug1")
    later = NOW + SPAN * 10
    try:
        made = await make_ahead(connection, later)
    finally:
        await connection.execute("RESET client_min_messages")
    assert len(made) == AHEAD + 1
    proven = [line for line in said if "is implied by existing constraints" in line]
    assert len(proven) >= AHEAD - 1, "all but today's and one next to it"
    rules = "SELECT count(*) FROM pg_constraint WHERE conname ~ '^none_of_'"
    assert await connection.fetchval(rules) == 0, "they would refuse the jobs of that day"
    job = await add_job(connection, at=later)
    assert await home_of(connection, job) == partition_at(later).name


async def test_a_rule_that_a_crash_left_behind_is_dropped(connection: Connection) -> None:
    await connection.execute(
        "ALTER TABLE jobs_carried ADD CONSTRAINT none_of_20300101 CHECK (tenant < 0) NOT VALID"
    )
    await make_ahead(connection, NOW)
    assert await home_of(connection, await add_job(connection, at=OLD)) == "jobs_carried"


async def test_many_jobs_that_came_before_their_partition_stay_where_they_are(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moving them would stop everybody; they are swept row by row when they are old."""
    monkeypatch.setattr("fairway.store.schema.partitions.STRAYS_MAX", 2)
    early = NOW + SPAN * 30
    jobs = [await add_job(connection, at=early) for _ in range(3)]
    assert partition_at(early).name not in await make_ahead(connection, early)
    assert {await home_of(connection, job) for job in jobs} == {"jobs_carried"}
