"""What runs say, written down: in groups, away from the job path, so much of each tenant.

Best effort: nothing about a job waits for it. A tenant has a bucket of bytes; a chunk beyond it
becomes a mark that counts its lines, and some marks a second are kept, too. Chunks that wait to be
written are bounded for all, and no tenant has more than half of what is left of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from fairway.core.backpressure.rate_limit import Bucket
from fairway.core.errors import Unavailable
from fairway.core.ids import ShardId, TenantId
from fairway.core.ownership.tenant_shards import TenantShards
from fairway.core.run.log_chunk import Chunk
from fairway.runtime.telemetry import Instruments
from fairway.services.group_commit import GroupCommit, Sizes
from fairway.services.jobs.watchers import Watchers
from fairway.services.transient_errors import told_if_away
from fairway.store.connections.database import Database
from fairway.store.job_logs import keep_lines

BYTES_PER_SECOND = 16 << 10  # of one tenant: 1.4 GB a day
BURST_BYTES = 64 << 20
MARKS_PER_SECOND, MARKS_BURST = 10, 1_000  # of one tenant
CHUNKS_WAITING_MAX = 5_000
TENANTS_MAX = 10_000  # that are remembered; one that is not is met with a full bucket


class OfferedChunk(NamedTuple):
    """Lines of a run, and what stands in their place should the tenant have no room."""

    chunk: Chunk
    mark: bytes
    line_count: int


class _Account(NamedTuple):
    """What one tenant may still have written."""

    bytes: Bucket
    marks: Bucket


class _Waiting(NamedTuple):
    chunk: Chunk
    is_done: asyncio.Future[None]


_SIZES = Sizes[_Waiting](lambda one: 1, lambda one: len(one.chunk.lines))


class RunLogs:
    def __init__(
        self,
        database: Database,
        watchers: Watchers,
        instruments: Instruments,
        tenant_shards: TenantShards,
    ) -> None:
        self._database = database
        self._tenant_shards = tenant_shards
        self._watchers = watchers
        self._clock = instruments.clock
        self._accounts: dict[TenantId, _Account] = {}
        self._waiting: Counter[TenantId] = Counter()  # chunks to be written
        self._group = GroupCommit("logs", self._write, instruments=instruments, sizes=_SIZES)

    async def keep(self, offered: Sequence[OfferedChunk]) -> int:
        """When they are on disk; answers how many lines are not, for want of room."""
        if self._group.jobs_waiting + len(offered) > CHUNKS_WAITING_MAX:
            raise Unavailable("Too many lines of jobs wait to be written.", code="OVERLOADED")
        loop, dropped = asyncio.get_running_loop(), 0
        waiting: list[_Waiting] = []
        for one in offered:
            room = CHUNKS_WAITING_MAX - self._group.jobs_waiting - len(waiting)
            chunk = self._admitted(one, room)
            if chunk is not one.chunk:
                dropped += one.line_count
            if chunk is not None:
                waiting.append(_Waiting(chunk, loop.create_future()))
                self._waiting[chunk.tenant] += 1
        self._group.add_many(waiting)
        with told_if_away:
            await asyncio.gather(*(one.is_done for one in waiting))
        return dropped

    def _admitted(self, one: OfferedChunk, room: int) -> Chunk | None:
        """The chunk, or a mark in its place, or nothing; `room` is for so many more of all."""
        chunk, now_us = one.chunk, self._clock.now_us()
        if self._waiting[chunk.tenant] >= room:
            return None
        account = self._account(chunk.tenant, now_us)
        if not account.bytes.take(len(chunk.lines), BYTES_PER_SECOND, BURST_BYTES, now_us):
            return chunk
        if not account.marks.take(1, MARKS_PER_SECOND, MARKS_BURST, now_us):
            return chunk._replace(last_n=chunk.first_n, lines=one.mark)  # it is one line
        return None

    def _account(self, tenant: TenantId, now_us: int) -> _Account:
        account = self._accounts.get(tenant)
        if account is None:
            if len(self._accounts) >= TENANTS_MAX:
                self._accounts.pop(next(iter(self._accounts)))
            account = _Account(Bucket(BURST_BYTES, now_us), Bucket(MARKS_BURST, now_us))
            self._accounts[tenant] = account
        return account

    async def _write(self, group: list[_Waiting]) -> None:
        try:
            await self._insert(group)
        except Exception as error:
            for one in group:
                if not one.is_done.done():
                    one.is_done.set_exception(error)
            return
        finally:
            self._waiting -= Counter(one.chunk.tenant for one in group)  # none is kept at zero
        for one in group:
            if not one.is_done.done():
                one.is_done.set_result(None)
        self._watchers.notify({one.chunk.job for one in group})

    async def _insert(self, group: list[_Waiting]) -> None:
        by_shard: dict[ShardId, list[Chunk]] = {}
        for one in group:
            shard = self._tenant_shards.of_job(one.chunk.tenant, one.chunk.job)
            by_shard.setdefault(shard, []).append(one.chunk)
        async with self._database.background() as connection:
            for shard, chunks in by_shard.items():
                await keep_lines(connection, shard, chunks)
