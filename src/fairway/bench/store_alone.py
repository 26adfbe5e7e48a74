"""What the store can do by itself: the platform's own two statements, in batches, nothing else."""

from __future__ import annotations

import asyncio
import time

from fairway.bench.platform import BenchPlatform
from fairway.core.ids import FIRST_SHARD, NO_EPOCH, Epoch, TenantId, TypeId
from fairway.core.job import QueuedJob
from fairway.core.pools import SHORT
from fairway.core.run.lease import next_epoch
from fairway.runtime.clock import SystemClock
from fairway.runtime.random_ids import JobIdFactory
from fairway.store import leadership, outcomes, submissions
from fairway.store.connections.database import Database
from fairway.store.outcomes import Success

BATCH = 500
TYPE = TypeId(1)
PAYLOAD = b'{"n":12345}'


async def measure(platform: BenchPlatform, seconds: float) -> float:
    """Jobs inserted and completed a second: one connection writes them, another ends them."""
    database = await Database.open(platform.dsn)
    async with database.background() as connection:
        claims = await leadership.claim_shards(connection, "bench", "", seconds + 60)
        terms = {shard: claim.term for shard, claim in claims.items()}
    queue: asyncio.Queue[list[QueuedJob] | None] = asyncio.Queue(maxsize=4)
    began = time.perf_counter()

    async def insert() -> None:
        factory = JobIdFactory(SystemClock())
        async with database.hot() as connection:
            while time.perf_counter() - began < seconds:
                ids = factory.make(FIRST_SHARD, BATCH)
                jobs = [
                    QueuedJob(
                        id_,
                        TenantId(tenant + 1),
                        SHORT.number,
                        TYPE,
                        5,
                        0,
                        NO_EPOCH,
                        0,
                        0,
                        None,
                        PAYLOAD,
                    )
                    for id_, tenant in zip(ids, platform.draw(BATCH), strict=True)
                ]
                await submissions.insert_jobs(connection, FIRST_SHARD, jobs)
                await queue.put(jobs)
        await queue.put(None)

    async def complete() -> int:
        done, epoch = 0, next_epoch(NO_EPOCH, terms[FIRST_SHARD])
        async with database.hot() as connection:
            while (jobs := await queue.get()) is not None:
                rows = [_success(job, epoch) for job in jobs]
                await outcomes.record_successes(connection, {FIRST_SHARD: terms[FIRST_SHARD]}, rows)
                done += len(jobs)
        return done

    _, done = await asyncio.gather(insert(), complete())
    rate = done / (time.perf_counter() - began)
    async with database.background() as connection:
        await leadership.release_shards(connection, terms)
    async with database.upkeep() as connection:
        await connection.execute("TRUNCATE jobs")
    await database.close()
    return rate


def _success(job: QueuedJob, epoch: Epoch) -> Success:
    return Success(FIRST_SHARD, job.tenant, job.id, epoch, 10, b"null")
