"""Rows to test the store with: jobs, owners, leases, and a look at what became of them."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from fairway.core.ids import Epoch, PoolId, ShardId, TenantId, Term, TypeId, make_job_id, shard_of
from fairway.core.job import JobRecord, QueuedJob
from fairway.core.run.lease import next_epoch
from fairway.runtime.clock import SystemClock
from fairway.runtime.random_ids import JobIdFactory, lease_tokens, session_key
from fairway.store import history, leadership, leases, promotion, submissions
from fairway.store.connections.database import Connection
from fairway.store.leases import LeaseRow
from fairway.store.registry.tenants import found_cluster

SHARD = ShardId(0)
_ids = JobIdFactory(SystemClock())
_PLAIN = QueuedJob(
    _ids.make(ShardId(0), 1)[0],
    TenantId(1),
    PoolId(1),
    TypeId(1),
    5,
    0,
    Epoch(0),
    0,
    0,
    None,
    b"{}",
)


def new_job(*, shard: int = SHARD, at: datetime | None = None, **changes: Any) -> QueuedJob:
    """A job that was made now, or at another moment."""
    job_id = _ids.make(ShardId(shard), 1)[0]
    if at is not None:
        counter = int(job_id[19:23], 16)
        chance = int(job_id[24:], 16) & 0xFFFFFFFFFF
        job_id = make_job_id(ShardId(shard), int(at.timestamp() * 1000), counter, chance)
    return replace(_PLAIN, id=job_id, **changes)


async def add_jobs(connection: Connection, *jobs: QueuedJob) -> None:
    await submissions.insert_jobs(connection, SHARD, jobs)


async def add_job(connection: Connection, **changes: Any) -> QueuedJob:
    job = new_job(**changes)
    await add_jobs(connection, job)
    return job


async def own(connection: Connection, owner: str = "first", *, seconds: float = 60) -> int:
    """Become the owner of the shard, whoever it was before; answers the term."""
    await found_cluster(connection, 1, "secret")
    await connection.execute("UPDATE shards SET expires_at = '-infinity'")
    async with asyncio.timeout(10):
        while True:  # who writes under the last term may hold the row just now: it is passed over
            taken = await leadership.claim_shards(connection, owner, f"http://{owner}", seconds)
            if SHARD in taken:
                return taken[SHARD].term


async def start(connection: Connection, job: QueuedJob, term: int) -> LeaseRow:
    """Write a lease for a waiting job."""
    lease = lease_for(job, term)
    assert await leases.write_leases(connection, {SHARD: Term(term)}, [lease]) == {job.id}
    return lease


def lease_for(job: QueuedJob, term: int) -> LeaseRow:
    epoch = next_epoch(job.epoch, Term(term))
    token = lease_tokens().make(job.id, epoch)
    return LeaseRow(shard_of(job.id), job.tenant, job.id, epoch, session_key(), token)


async def schedule(connection: Connection, job: QueuedJob, *, due_in_seconds: float) -> None:
    await connection.execute(
        "UPDATE jobs SET state = 0, execute_at = now() + make_interval(secs => $2) WHERE id = $1",
        job.id,
        due_in_seconds,
    )


async def promote_all(connection: Connection, term: int, most: int = 10) -> list[QueuedJob]:
    """Move what is due, as the promoter does: so many of each tenant."""
    bunches = await promotion.due_bunches(connection, SHARD, (-1, TenantId(-1)), 100)
    due = [bunch for bunch in bunches if bunch.age_ms >= 0]
    shares = {bunch.tenant: most for bunch in due}
    return await promotion.promote_due(connection, SHARD, Term(term), due, shares)


async def finish(connection: Connection, job: QueuedJob, moment: datetime) -> None:
    await connection.execute(
        "UPDATE jobs SET state = 3, finished_at = $2 WHERE id = $1", job.id, moment
    )


async def look(connection: Connection, job: QueuedJob) -> JobRecord:
    record = await history.read_job(connection, SHARD, job.tenant, job.id)
    assert record is not None, f"{job.id} is gone"
    return record


async def is_blocked(observer: Connection, blocked: Connection) -> bool:
    """Wait until the other connection waits for a lock; False when it never does."""
    for _ in range(200):
        is_waiting = await observer.fetchval(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)",
            blocked.get_server_pid(),
        )
        if is_waiting:
            return True
        await asyncio.sleep(0.01)
    return False
