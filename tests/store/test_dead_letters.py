"""Dead letters in the store: a question reads about as much as it answers, whatever there is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from tests.laws.plans import Plan
from tests.store.rows import SHARD, new_job, own

from fairway.core.failure.dead_letter import DeadFilter
from fairway.core.ids import LOWEST_JOB_ID, TenantId
from fairway.store import dead_letters
from fairway.store.connections.database import Connection
from fairway.store.dead_letters import Replay
from fairway.store.sql import load

STATEMENTS = load("dead_letters.sql")
HIGHEST = "ffffffff-ffff-ffff-ffff-ffffffffffff"
EVERYTHING = DeadFilter(HIGHEST, LOWEST_JOB_ID)
DEAD, CAUSES, LIMIT = 3000, 10, 20
NOW = datetime.now(UTC)


@pytest.fixture
async def buried(database_url: str, connection: Connection) -> Connection:
    """Thousands of dead letters among as many jobs that went well, on a connection for people."""
    await own(connection)
    jobs = [new_job(type=n % 3) for n in range(2 * DEAD)]
    rows = [
        (0, job.id, 1, job.type, 1, 5, 4, b"{}", n % CAUSES, NOW)
        if n % 2
        else (0, job.id, 1, job.type, 1, 5, 3, b"{}", None, NOW)
        for n, job in enumerate(jobs)
    ]
    columns = ("shard", "id", "tenant", "type", "pool", "priority", "state", "payload",
               "fingerprint", "finished_at")  # fmt: skip
    await connection.copy_records_to_table("jobs", columns=columns, records=rows)
    await connection.execute("ANALYZE jobs")
    return await asyncpg.connect(database_url, server_settings={"jit": "off"})


async def test_a_page_reads_a_page(buried: Connection) -> None:
    narrowings: list[dict[str, Any]] = [{}, {"type": 1}, {"fingerprint": 3}]
    for narrow in narrowings:
        wanted = EVERYTHING._replace(**narrow)._asdict()
        values = {"shard": SHARD, "tenant": 1, "limit": LIMIT, **wanted}
        plan = await Plan.of(buried, STATEMENTS["list_dead"], **values)
        assert plan.rows_touched() <= 12 * LIMIT, narrow
        walk = {"cursor": LOWEST_JOB_ID, "began": NOW}
        plan = await Plan.of(buried, STATEMENTS["next_dead"], **values, **walk)
        assert plan.rows_touched() <= 12 * LIMIT, narrow
    await buried.close()


async def test_a_count_stops_counting(buried: Connection) -> None:
    plan = await Plan.of(
        buried, STATEMENTS["count_dead"], shard=SHARD, tenant=1, limit=100, **EVERYTHING._asdict()
    )
    assert plan.rows_touched() <= 200
    assert await dead_letters.count_dead(buried, SHARD, TenantId(1), EVERYTHING, 100) == 100
    assert await dead_letters.count_dead(buried, SHARD, TenantId(1), EVERYTHING, 10**6) == DEAD
    await buried.close()


async def test_groups_walk_from_cause_to_cause(buried: Connection) -> None:
    found = await dead_letters.causes(buried, SHARD, TenantId(1), limit=100, count_max=10**6)
    assert sum(cause.matched for cause in found) == DEAD
    few = await dead_letters.causes(buried, SHARD, TenantId(1), limit=2, count_max=7)
    assert [cause.matched for cause in few] == [7, 7]
    plan = await Plan.of(
        buried, STATEMENTS["dead_causes"], shard=SHARD, tenant=1, limit=5, count_max=10
    )
    assert plan.rows_touched() < DEAD / 4
    await buried.close()


async def test_an_old_owner_replays_and_discards_nothing(buried: Connection) -> None:
    (letter, *_) = await dead_letters.list_dead(buried, SHARD, TenantId(1), EVERYTHING, 1)
    term = await buried.fetchval("SELECT term FROM shards")
    old = Replay(TenantId(1), [letter.id], None, b"{}")
    assert await dead_letters.replay(buried, SHARD, term - 1, old) == []
    assert await dead_letters.discard(buried, SHARD, term - 1, TenantId(1), [letter.id]) == 0
    (job,) = await dead_letters.replay(buried, SHARD, term, old)
    assert job.id == letter.id
    assert await dead_letters.replay(buried, SHARD, term, old) == [], "once"
    await buried.close()
