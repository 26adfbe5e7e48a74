"""Group reads: one statement for all who ask at once, each the right answer, never an old one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.store.rows import SHARD, new_job

from fairway.core.errors import Unavailable
from fairway.core.ids import JobId, ShardId, TenantId
from fairway.core.pools import MEDIUM
from fairway.services.jobs.job_reader import READS_MAX, READS_TENANT_MAX, JobReader
from fairway.store import history
from fairway.store.connections.database import Connection, Database
from fairway.store.submissions import insert_jobs


@pytest.fixture
def reader(database: Database) -> JobReader:
    return JobReader(database, lambda number: MEDIUM)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many jobs each statement read."""
    seen: list[int] = []
    read_jobs = history.read_jobs

    async def counted(connection: Connection, shard: int, wanted: Any) -> Any:
        seen.append(len(wanted))
        return await read_jobs(connection, ShardId(shard), wanted)

    monkeypatch.setattr(history, "read_jobs", counted)
    return seen


async def test_all_who_ask_at_once_share_a_read_and_get_their_own(
    connection: Connection, reader: JobReader, reads: list[int]
) -> None:
    tenants = range(1, 5)
    jobs = [new_job(tenant=tenants[n % 4]) for n in range(READS_MAX + 28)]
    await insert_jobs(connection, SHARD, jobs)
    found = await asyncio.gather(*(reader.read(job.tenant, job.id) for job in jobs))
    assert [one.record.id for one in found if one] == [job.id for job in jobs]
    assert reads == [READS_MAX, 28]


async def test_a_job_that_many_ask_for_is_read_once(
    connection: Connection, reader: JobReader, reads: list[int]
) -> None:
    job = new_job()
    await insert_jobs(connection, SHARD, [job])
    found = await asyncio.gather(*(reader.read(job.tenant, job.id) for _ in range(20)))
    assert {one.record.id for one in found if one} == {job.id}
    assert reads == [1]


async def test_another_tenants_job_is_not_there(connection: Connection, reader: JobReader) -> None:
    job = new_job()
    await insert_jobs(connection, SHARD, [job])
    mine, others = await asyncio.gather(
        reader.read(job.tenant, job.id), reader.read(TenantId(job.tenant + 1), job.id)
    )
    assert mine is not None
    assert others is None
    assert await reader.read(job.tenant, JobId("00000000-0000-7000-8000-000000000000")) is None


async def test_an_answer_is_not_older_than_its_question(
    connection: Connection, reader: JobReader
) -> None:
    """Who asks while a read is under way is answered by the next one."""
    early, late = new_job(), new_job()
    await insert_jobs(connection, SHARD, [early])
    first = asyncio.create_task(reader.read(early.tenant, early.id))
    await asyncio.sleep(0)
    await insert_jobs(connection, SHARD, [late])
    assert await reader.read(late.tenant, late.id) is not None
    assert await first is not None


async def test_one_who_leaves_takes_the_answer_from_nobody(
    connection: Connection, reader: JobReader
) -> None:
    job = new_job()
    await insert_jobs(connection, SHARD, [job])
    leaver = asyncio.create_task(reader.read(job.tenant, job.id))
    stayer = asyncio.create_task(reader.read(job.tenant, job.id))
    await asyncio.sleep(0)
    leaver.cancel()
    assert await stayer is not None


async def test_a_store_that_is_away_is_said_to_everybody(
    database: Database, reader: JobReader
) -> None:
    database.terminate()
    answers = await asyncio.gather(
        *(reader.read(TenantId(1), new_job().id) for _ in range(3)), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [Unavailable] * 3


async def test_a_tenant_that_asks_for_very_many_keeps_nobody_waiting(
    connection: Connection, reader: JobReader, reads: list[int]
) -> None:
    job = new_job(tenant=2)
    await insert_jobs(connection, SHARD, [job])
    many = [asyncio.create_task(reader.read(TenantId(1), new_job().id)) for _ in range(1000)]
    await asyncio.sleep(0)
    assert await reader.read(TenantId(2), job.id) is not None
    assert len(reads) <= 2
    assert set(await asyncio.gather(*many)) == {None}
    assert max(reads) <= READS_TENANT_MAX + 1
