"""Group reads: everyone who asks about a job while a read is under way shares the next one.

People poll, many at a time. One statement for all who asked costs the store and this process a
fraction of one for each, and when it is quiet nobody waits. An answer is never older than its
question: a read begins after everybody whom it answers has asked. On a distributed store each part
is read for itself: one that does not answer holds up nobody who asks of another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import groupby, islice
from typing import NamedTuple, TypeAlias

from fairway.core.errors import Unavailable
from fairway.core.ids import JobId, PoolId, ShardId, TenantId
from fairway.core.job import JobRecord
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.pools import Pool
from fairway.services.group_waiters import GroupWaiters
from fairway.services.transient_errors import again
from fairway.store import checkpoints, history
from fairway.store.checkpoints import Saved
from fairway.store.connections.database import DISCONNECTED, Database

READS_MAX = 100  # in one statement: a row may carry tens of kilobytes
READS_TENANT_MAX = 32  # of one tenant's, so that others never wait behind many heavy ones


class StoredJob(NamedTuple):
    record: JobRecord
    checkpoint: Saved | None = None


Key: TypeAlias = tuple[TenantId, JobId]  # tenant, job
Answer: TypeAlias = "asyncio.Future[StoredJob | None]"


class JobReader:
    def __init__(
        self,
        database: Database,
        pool_of: Callable[[PoolId], Pool],
        tenant_shards: TenantShards | None = None,
    ) -> None:
        self._database = database
        self._tenant_shards = tenant_shards or TenantShards(1)
        self._pool_of = pool_of  # a pool by its number, as it is now
        self._parts: dict[int | None, _PartReader] = {}

    async def read(self, tenant: TenantId, job: JobId) -> StoredJob | None:
        """The job as it stands in the store; None when this tenant has no such job."""
        part = self._database.together(self._tenant_shards.of_job(tenant, job))
        reader = self._parts.get(part)
        if reader is None:
            ours = (self._database, self._pool_of, self._tenant_shards)
            reader = self._parts[part] = _PartReader(*ours)
        return await reader.read(tenant, job)


class _PartReader:
    """Those that one statement may ask for: all, or on a distributed store a group of shards."""

    def __init__(
        self, database: Database, pool_of: Callable[[PoolId], Pool], tenant_shards: TenantShards
    ) -> None:
        self._database = database
        self._pool_of = pool_of
        self._tenant_shards = tenant_shards
        # by tenant; whose turn is next is first
        self._asked: dict[TenantId, dict[JobId, Answer]] = {}
        self._waiters = GroupWaiters(database.wait_seconds, Unavailable)
        self._reading: asyncio.Task[None] | None = None

    async def read(self, tenant: TenantId, job: JobId) -> StoredJob | None:
        mine = self._asked.setdefault(tenant, {})
        answer = mine.get(job)
        if answer is None:
            answer = mine[job] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(_heard)
            self._waiters.add(answer)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_on(), name="job reader")
        return await asyncio.shield(answer)  # one who leaves takes it from nobody

    async def _read_on(self) -> None:
        while self._asked:
            group = self._next_group()
            try:
                await again(partial(self._answer, group), self._database.wait_seconds)
            except DISCONNECTED:
                _fail(group, Unavailable())
            except Exception as error:  # told to whoever asked; the next group has its own luck
                _fail(group, error)

    def _next_group(self) -> dict[Key, Answer]:
        """Some of each tenant's, and tenants in turn."""
        chosen: dict[Key, Answer] = {}
        for tenant in list(islice(self._asked, READS_MAX)):
            mine = self._asked.pop(tenant)
            for job in list(islice(mine, min(READS_TENANT_MAX, READS_MAX - len(chosen)))):
                chosen[tenant, job] = mine.pop(job)
            if mine:
                self._asked[tenant] = mine  # behind the others
            if len(chosen) == READS_MAX:
                break
        return {key: chosen[key] for key in sorted(chosen, key=self._shard)}

    async def _answer(self, group: dict[Key, Answer], seconds: float) -> None:
        async with self._database.hot(seconds, self._shard(next(iter(group)))) as connection:
            for shard, keys in groupby(group, key=self._shard):
                wanted = list(keys)
                records = await history.read_jobs(connection, shard, wanted)
                resumable = [key for key, record in records.items() if self._may_resume(record)]
                saved = await checkpoints.newest_of_each(connection, shard, resumable)
                for key in wanted:
                    record = records.get(key)
                    if not group[key].done():  # else its time was over, or this is another try
                        found = StoredJob(record, saved.get(key)) if record else None
                        group[key].set_result(found)

    def _shard(self, key: Key) -> ShardId:
        return self._tenant_shards.of_job(*key)

    def _may_resume(self, record: JobRecord) -> bool:
        return self._pool_of(record.pool).checkpoint != "none"


def _fail(group: dict[Key, Answer], error: Exception) -> None:
    for answer in group.values():
        if not answer.done():
            answer.set_exception(error)


def _heard(answer: Answer) -> None:
    """Everybody may have left by now; then there is nobody to be warned of an error."""
    if not answer.cancelled():
        answer.exception()
