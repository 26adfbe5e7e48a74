"""Statistics lie: a queue is empty most of the time, and was when they were taken."""

from __future__ import annotations

import asyncpg
from tests.acceptance import progress
from tests.acceptance.house import House
from tests.store.rows import new_job

HISTORY = 60_000
BACKLOG = 24_000
BATCH = 1_000


async def test_a_backlog_drains_under_statistics_of_an_empty_queue(
    house: House, figures: dict[str, str]
) -> None:
    house.start_server()
    await house.servers[0].ready()
    await _analysed_while_nothing_was_queued(house.dsn)
    for _ in range(BACKLOG // BATCH):
        jobs = [{"type": "idle", "pool": "short", "payload": {}}] * BATCH
        reply = await house.call("POST", "/v1/jobs/batch", json={"jobs": jobs})
        assert reply.json()["accepted"] == BATCH, reply.text[:300]
    worker = house.start_worker(pools=("short=2000",))
    await worker.says("worker ready")
    seconds = await progress.drained(house.dsn, patience_seconds=20)
    figures["backlog under lying statistics"] = f"{BACKLOG} jobs in {seconds:.1f} s"


async def _analysed_while_nothing_was_queued(dsn: str) -> None:
    """A day's finished work, and statistics that say: no row is ever queued."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET session_replication_role = replica")  # not of this history
        job = new_job()
        await connection.execute(
            "INSERT INTO jobs"
            " (shard, id, tenant, type, pool, priority, state, payload, finished_at)"
            " SELECT 0, overlay($1::text PLACING lpad(to_hex(n), 8, '0') FROM 29)::uuid,"
            " 1 + n % 50, 1, 1, 5, 3, '{}', now() FROM generate_series(1, $2::int) AS n",
            job.id, HISTORY,
        )  # fmt: skip
        await connection.execute("ANALYZE jobs")
    finally:
        await connection.close()
