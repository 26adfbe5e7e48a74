"""Days of what runs said: there before they are needed, gone when they are past retention."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from fairway.core.ids import Epoch, JobId, ShardId, TenantId
from fairway.core.run.log_chunk import Chunk, LogPlace
from fairway.store.connections.database import Connection
from fairway.store.job_logs import keep_lines, list_lines
from fairway.store.schema.log_partitions import drop_log_days, make_log_days

NOW = datetime.now(UTC)
JOB = JobId("01980a5e-7c1b-7000-8000-04a2b1c3d4e5")
SHARD, TENANT = ShardId(0), TenantId(7)


@pytest.fixture
def connection(owner: Connection) -> Connection:
    return owner


def chunk(first_n: int, last_n: int) -> Chunk:
    return Chunk(TENANT, JOB, Epoch(3), 1, first_n, last_n, b"[]")


async def test_days_come_and_go(connection: Connection) -> None:
    await drop_log_days(connection, "job_logs", NOW + timedelta(days=30))
    with pytest.raises(asyncpg.CheckViolationError):
        await keep_lines(connection, SHARD, [chunk(1, 1)])
    made = await make_log_days(connection, NOW)
    assert len(made) == 4
    assert f"job_logs_{NOW:%Y%m%d}" in made
    assert await make_log_days(connection, NOW) == []
    await keep_lines(connection, SHARD, [chunk(1, 4), chunk(5, 5)])
    whose = (SHARD, TENANT, JOB)
    assert len(await list_lines(connection, whose, LogPlace(Epoch(0), 0), None, 10)) == 2
    assert len(await list_lines(connection, whose, LogPlace(Epoch(3), 3), None, 10)) == 2
    assert len(await list_lines(connection, whose, LogPlace(Epoch(3), 4), None, 10)) == 1
    assert await list_lines(connection, whose, LogPlace(Epoch(3), 0), 2, 10) == []
    assert await drop_log_days(connection, "job_logs", NOW - timedelta(days=7)) == []
    gone = await drop_log_days(connection, "job_logs", NOW + timedelta(days=2))
    assert f"job_logs_{NOW:%Y%m%d}" in gone
    assert await list_lines(connection, whose, LogPlace(Epoch(0), 0), None, 10) == []
    await make_log_days(connection, NOW)
